//! Undoing an operation for one user whose history is given. The conformance suite has random
//! histories.

use std::time::Duration;

use super::{Decision, Error, Mutation, ReadSet, Record, Timestamp, User, UserChange};
use super::{id, mutation, user};
use crate::error::NotUndone;
use crate::history_part::{HistoryEvents, HistoryPart};
use crate::model::attribute::Value;
use crate::model::event::{
    ChangeSet, Event, EventKind, FieldChange, IdentityChange, Origin, RecordedValue,
};
use crate::model::policies::Policies;
use crate::model::user::{Identity, State};
use crate::mutation::operation_events::Reversal;
use crate::mutation::read_set::{Write, WriteSet};
use polynym_identifier::{Identifier, Kind, RawIdentifier, Rules};

const OPERATION: &str = "import-1";

/// An event of the operation.
fn event(sequence: u64, changes: ChangeSet) -> Event {
    let origin = Origin { operation_id: OPERATION.to_owned(), ..Origin::default() };
    Event {
        tenant: user(&[]).tenant,
        user: id(1),
        sequence,
        time: Timestamp::from_millis(1_000 + sequence as i64),
        origin,
        kind: EventKind::UserUpdated,
        changes,
    }
}

/// The change of the display name to this one.
fn renamed(before: &str, after: &str) -> ChangeSet {
    let value = |text: &str| Some(RecordedValue::Whole(Value::String(text.to_owned())));
    let path = "display_name".to_owned();
    let change = FieldChange { path, before: value(before), after: value(after) };
    ChangeSet { fields: vec![change], ..ChangeSet::default() }
}

fn named(name: &str) -> User {
    User { display_name: name.to_owned(), ..user(&[]) }
}

fn undoing(in_batch: bool) -> Mutation {
    let operation_id = OPERATION.to_owned();
    let reversal = Reversal { operation_id, since: None, is_bulk: false, in_batch };
    mutation(UserChange::Revert(reversal))
}

/// Undoes the operation for user 1, whose history has these events.
fn decide(
    mutation: &Mutation,
    present: User,
    events: HistoryEvents,
) -> Result<Box<WriteSet>, Error> {
    let mut read_set = ReadSet::optimistic();
    read_set.add_user(id(1), Some(Record::new(present)));
    read_set.add_history(HistoryPart { user: id(1), cursor: None, limit: 64 }, events);
    loop {
        match mutation.decide(&read_set)? {
            Decision::Ready(write_set) => return Ok(write_set),
            Decision::NeedsReads(needs) => {
                assert!(needs.users.is_empty() && needs.histories.is_empty(), "{needs:?}");
                needs.claims.into_iter().for_each(|key| read_set.add_claim(key, None));
            }
        }
    }
}

fn read(events: Vec<Event>) -> HistoryEvents {
    HistoryEvents { events, ..HistoryEvents::default() }
}

fn kept(outcome: Result<Box<WriteSet>, Error>) -> NotUndone {
    match outcome {
        Err(Error::NotUndone(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

fn written(write_set: &WriteSet) -> User {
    write_set.users().next().unwrap().user.clone()
}

#[test]
fn an_event_that_cannot_be_read_keeps_the_user() {
    let events = vec![event(2, renamed("one", "two")), event(1, renamed("none", "one"))];
    let undone = decide(&undoing(false), named("two"), read(events.clone())).unwrap();
    assert_eq!(written(&undone).display_name, "none");
    let damaged = HistoryEvents { is_damaged: true, ..read(events) };
    let outcome = decide(&undoing(false), named("two"), damaged);
    assert_eq!(kept(outcome), NotUndone::ValuesNotKept);
}

/// The history reaches back as far as the tenant keeps it.
#[test]
fn expired_events_of_the_operation_keep_the_user() {
    let newest = event(3, renamed("two", "three"));
    let outcome = decide(&undoing(false), named("three"), read(vec![newest.clone()]));
    assert_eq!(kept(outcome), NotUndone::ValuesNotKept);
    let with_gap = vec![newest.clone(), event(1, renamed("none", "one"))];
    assert_eq!(
        kept(decide(&undoing(false), named("three"), read(with_gap))),
        NotUndone::ValuesNotKept
    );

    let other = Event { origin: Origin::default(), ..event(2, renamed("one", "two")) };
    let with_other = read(vec![newest.clone(), other]);
    let undone = decide(&undoing(false), named("three"), with_other).unwrap();
    assert_eq!(written(&undone).display_name, "two");
}

/// The older events are those of others if the operation began after all that have expired.
#[test]
fn expired_events_before_the_operation_do_not_matter() {
    let newest = event(3, renamed("two", "three"));
    let undo = |retention| {
        let since = Some(Timestamp::from_millis(1_000));
        let operation_id = OPERATION.to_owned();
        let reversal = Reversal { operation_id, since, is_bulk: false, in_batch: false };
        let policies = Policies { history_retention: retention, ..Policies::default() };
        let revert = mutation(UserChange::Revert(reversal));
        let undoing = Mutation { policies: policies.into(), ..revert };
        decide(&undoing, named("three"), read(vec![newest.clone()]))
    };
    assert_eq!(written(&undo(Duration::from_secs(1)).unwrap()).display_name, "two");
    assert_eq!(kept(undo(Duration::from_millis(999))), NotUndone::ValuesNotKept);
}

#[test]
fn a_restored_identity_has_the_form_of_the_present_rules() {
    let typed = RawIdentifier::Url("https://x.com/@Joe");
    let old = Identifier::from_canonical(Kind::Url, "https://x.com/@joe".to_owned());
    let present = Rules::PRESENT.parse(typed).unwrap();
    assert_ne!(old, present);
    let owner = user(&["url:https://example.com/joe"]);
    let before = Identity {
        identifier: old,
        display: "https://x.com/@Joe".to_owned(),
        rules_version: Rules::UNNAMED,
        ..owner.identities[0].clone()
    };
    let change = IdentityChange { before: Some(before), after: None };
    let changes = ChangeSet { identities: vec![change], ..ChangeSet::default() };
    let events = read(vec![event(1, changes)]);
    let undone = written(&decide(&undoing(false), user(&[]), events).unwrap());
    let restored = &undone.identities[0];
    assert_eq!(restored.identifier, present);
    assert_eq!(restored.rules_version, Rules::PRESENT.version());
}

/// A user who was restored by the operation is not purged at once.
#[test]
fn a_user_whose_purge_would_be_due_stays() {
    let deleted = |purge| State::Deleted {
        delete_time: Timestamp::from_millis(1),
        purge_time: Timestamp::from_millis(purge),
    };
    let undo = |purge| {
        let state = Some((Some(deleted(purge)), State::Active));
        let restored = event(1, ChangeSet { state, ..ChangeSet::default() });
        decide(&undoing(false), user(&[]), read(vec![restored]))
    };
    assert_eq!(kept(undo(1_999)), NotUndone::ValuesNotKept);
    assert_eq!(written(&undo(1_000_000).unwrap()).state, deleted(1_000_000));
}

/// A change that a frozen server has decided and not committed conflicts with this write.
#[test]
fn the_users_of_the_last_batch_are_stored() {
    let present = user(&["handle:joe"]);
    let stored = decide(&undoing(true), present.clone(), read(Vec::new())).unwrap();
    let record = Box::new(Record::new(present.clone()));
    assert_eq!(stored.writes, [Write::PutUser(record)]);
    let dry = Mutation { dry_run: true, ..undoing(true) };
    assert!(decide(&dry, present.clone(), read(Vec::new())).unwrap().writes.is_empty());
    let other = decide(&undoing(false), present, read(Vec::new())).unwrap();
    assert!(other.writes.is_empty());
}
