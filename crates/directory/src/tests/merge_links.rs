//! Records of damaged stores that name users who do not name them back.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    Decision, Error, Limits, Mutation, MutationKind, ReadSet, Record, State, Tenant, Timestamp,
    User, UserChange, Value, id, mutation, user,
};
use crate::history_part::HistoryEvents;
use crate::model::attribute_definition::{AttributeDefinition, ValueType};
use crate::model::imported_user::ImportedUser;
use crate::model::merge_report::ConflictPolicy;
use crate::model::policies::Policies;
use crate::model::record::MergeSnapshot;
use crate::mutation::read_set::{Write, WriteSet};

/// User `n`, with nothing.
fn bare(n: u8) -> Record {
    Record::new(User { id: id(n), ..user(&[]) })
}

/// A user of another tenant.
fn foreign(n: u8) -> Record {
    let mut record = bare(n);
    record.user.tenant = Tenant::parse("other").unwrap();
    record
}

/// User `n`, merged into user 1 as its undo data has it.
fn merged(n: u8, before: Record) -> Record {
    let mut record = bare(n);
    record.user.state = State::Merged { into: id(1) };
    record.internals.undo = Some(Box::new(MergeSnapshot {
        until: Timestamp::MAX,
        before,
        display_name: None,
        attributes: [].into(),
        unmarked: Vec::new(),
    }));
    record
}

/// User 1, who lists these users.
fn listing(users: &[u8]) -> Record {
    let mut record = bare(1);
    record.internals.merged = users.iter().map(|n| id(*n)).collect();
    record
}

/// Decides with these users, and without all others.
fn decide(mutation: &Mutation, users: &[Record]) -> Result<Box<WriteSet>, Error> {
    let mut read_set = ReadSet::default();
    loop {
        let needs = match mutation.decide(&read_set)? {
            Decision::Ready(write_set) => return Ok(write_set),
            Decision::NeedsReads(needs) => needs,
        };
        for id in needs.users {
            let found = users.iter().find(|record| record.id() == id);
            read_set.add_user(id, found.cloned());
        }
        needs.claims.into_iter().for_each(|key| read_set.add_claim(key, None));
        needs
            .histories
            .into_iter()
            .for_each(|id| read_set.add_history(id, HistoryEvents::default()));
    }
}

#[track_caller]
fn damaged(change: UserChange, users: &[Record]) {
    let outcome = decide(&mutation(change), users);
    assert!(matches!(outcome, Err(Error::MergeDamaged { .. })), "{outcome:?}");
}

fn written(change: UserChange, users: &[Record]) -> Vec<Write> {
    decide(&mutation(change), users).unwrap().writes
}

#[test]
fn an_unmerge_restores_only_the_merged_user() {
    let mut again = merged(2, bare(2));
    again.internals.undo = Some(Box::new(MergeSnapshot {
        before: merged(2, bare(2)),
        ..*again.internals.undo.clone().unwrap()
    }));
    let mut elsewhere = foreign(2);
    elsewhere.user.id = id(2);
    for secondary in [merged(2, bare(3)), merged(2, foreign(3)), merged(2, elsewhere), again] {
        let users = [listing(&[2]), secondary, bare(3)];
        damaged(UserChange::Unmerge(id(2)), &users);
    }
    let users = [listing(&[2]), merged(2, bare(2))];
    let writes = written(UserChange::Unmerge(id(2)), &users);
    assert_eq!(writes.iter().filter(|write| matches!(write, Write::PutUser(_))).count(), 2);
    let outcome = decide(&mutation(UserChange::Unmerge(id(2))), &[listing(&[3]), users[1].clone()]);
    assert!(matches!(outcome, Err(Error::NotMerged)), "{outcome:?}");
}

#[test]
fn an_unmerge_restores_only_what_a_call_can_set() {
    type Spoil = fn(&mut MergeSnapshot);
    let values = |value: Value| BTreeMap::from([("a".to_owned(), value)]);
    let text = || Value::String("\u{1b}[2J".to_owned());
    let spoils: [Spoil; 6] = [
        |undo| undo.before.user.display_name = "x".repeat(300 << 10),
        |undo| undo.before.user.display_name = "\u{1b}[31mred".to_owned(),
        |undo| undo.before.user.attributes = [("a".to_owned(), Value::Double(f64::NAN))].into(),
        |undo| {
            undo.before.user.attributes =
                [("a".to_owned(), Value::String("x".repeat(100 << 10)))].into();
        },
        |undo| undo.display_name = Some(("\u{1b}[31mred".to_owned(), String::new())),
        |undo| {
            let before = Some(Value::Double(f64::INFINITY));
            undo.attributes = [("a".to_owned(), (before, Value::Int(1)))].into();
        },
    ];
    for (n, spoil) in spoils.into_iter().enumerate() {
        let mut secondary = merged(2, bare(2));
        secondary.internals.undo.iter_mut().for_each(|undo| spoil(undo));
        let outcome = decide(&mutation(UserChange::Unmerge(id(2))), &[listing(&[2]), secondary]);
        assert!(matches!(outcome, Err(Error::MergeDamaged { .. })), "{n}: {outcome:?}");
    }

    let mut before = bare(2);
    before.user.attributes = (0..201).map(|n| (n.to_string(), Value::Bool(true))).collect();
    let users = [listing(&[2]), merged(2, before.clone())];
    let outcome = decide(&mutation(UserChange::Unmerge(id(2))), &users);
    let is_limit = matches!(outcome, Err(Error::TooMany { what: "attributes", count: 201, .. }));
    assert!(is_limit, "{outcome:?}");

    before.user.attributes = values(text());
    let remove = mutation(UserChange::RemoveMergeFaults);
    let remove =
        Mutation { kind: MutationKind::User(id(2), UserChange::RemoveMergeFaults), ..remove };
    let writes = decide(&remove, &[merged(2, before), listing(&[2])]).unwrap().writes;
    let is_removed =
        |write: &Write| matches!(write, Write::PutUser(record) if record.internals.undo.is_none());
    assert!(writes.iter().any(is_removed), "{writes:?}");
}

#[test]
fn the_undo_data_of_a_line_has_the_types_of_the_tenant() {
    let level = AttributeDefinition { value_type: Some(ValueType::Int), ..Default::default() };
    let attributes = BTreeMap::from([("level".to_owned(), level)]);
    let policies = Arc::new(Policies { attributes, ..Policies::default() });
    let import = |before: Option<Value>, after: Value| {
        let mut record = merged(2, bare(2));
        let undo = record.internals.undo.as_mut().unwrap();
        undo.attributes = [("level".to_owned(), (before, after))].into();
        let line = ImportedUser {
            has_id: true,
            state: record.user.state,
            internals: Some(record.internals),
            ..ImportedUser::default()
        };
        let change = UserChange::Import(Box::new(line));
        let kind = MutationKind::User(id(2), change);
        let mutation = mutation(UserChange::Purge);
        decide(&Mutation { kind, policies: policies.clone(), ..mutation }, &[])
    };
    let (int, text) = (Value::Int(1), Value::String("one".to_owned()));
    import(Some(int.clone()), int.clone()).unwrap();
    for (before, after) in
        [(Some(text.clone()), int.clone()), (Some(int), text.clone()), (None, text)]
    {
        let outcome = import(before, after);
        assert!(matches!(outcome, Err(Error::Invalid { .. })), "{outcome:?}");
    }
}

#[test]
fn no_mutation_follows_a_link_into_another_tenant() {
    let mut naming_back = foreign(2);
    naming_back.user.state = State::Merged { into: id(1) };
    for other in [foreign(2), naming_back] {
        let users = [listing(&[2]), other, bare(3)];
        damaged(UserChange::Purge, &users);
        let mut primary = bare(1);
        primary.internals.merged = vec![id(3)];
        let mut listed = listing(&[2]);
        listed.user.id = id(3);
        let merge = UserChange::Merge(id(3), ConflictPolicy::PrimaryWins);
        damaged(merge, &[bare(1), listed, users[1].clone()]);
    }
}

#[test]
fn a_merged_user_without_a_primary_can_be_purged() {
    let into = |n: u8, other: u8, listed: &[u8]| {
        let mut record = listing(listed);
        record.user.id = id(n);
        record.user.state = State::Merged { into: id(other) };
        record
    };
    let missing = [into(1, 2, &[])];
    let foreign_primary = [into(1, 2, &[]), foreign(2)];
    let unlisted = [into(1, 2, &[]), bare(2)];
    let circle = [into(1, 2, &[2]), into(2, 1, &[1])];
    let itself = [into(1, 1, &[1])];
    for users in [&missing[..], &foreign_primary, &unlisted, &circle, &itself] {
        let writes = written(UserChange::Purge, users);
        assert!(writes.contains(&Write::RemoveUser(id(1))), "{writes:?}");
        assert!(!writes.contains(&Write::RemoveUser(id(2))) || users.len() == 2, "{writes:?}");
    }
    let mut primary = listing(&[1]);
    primary.user.id = id(2);
    let outcome = decide(&mutation(UserChange::Purge), &[into(1, 2, &[]), primary]);
    assert!(matches!(outcome, Err(Error::UserMerged { .. })), "{outcome:?}");
}

#[test]
fn expiry_purges_a_merged_user_that_leads_nowhere_and_keeps_others() {
    let mut due = merged(2, bare(2));
    if let Some(undo) = &mut due.internals.undo {
        undo.until = Timestamp::from_millis(1);
    }
    let expire = Mutation { limits: Limits::default(), ..mutation(UserChange::Expire) };
    let expire = Mutation { kind: MutationKind::User(id(2), UserChange::Expire), ..expire };
    let writes = decide(&expire, std::slice::from_ref(&due)).unwrap().writes;
    assert!(writes.contains(&Write::RemoveUser(id(2))), "{writes:?}");
    let writes = decide(&expire, &[due, bare(1)]).unwrap().writes;
    let kept = writes
        .iter()
        .any(|write| matches!(write, Write::PutUser(record) if record.internals.undo.is_none()));
    assert!(kept && writes.len() == 1, "{writes:?}");
}
