//! [`Mutation::decide`]: the resulting users, and the errors.

use proptest::prelude::*;

use super::{
    Claim, ClaimWrite, Decision, Error, Limits, Mutation, MutationKind, NewUser, ReadRequest,
    ReadSet, Record, State, Tenant, Timestamp, UserChange, Value, Verification, Write,
    any_identifier, any_user, apply, id, identifier, mutation, names, new_identity, primaries,
    user,
};
use crate::model::user::User;
use crate::update_mask::Update;
use polynym_identifier::{IdentityKey, Kind, RULES_VERSION};

/// The error as text: errors have causes and do not compare.
fn error_text(outcome: Result<User, Error>) -> String {
    format!("{:?}", outcome.unwrap_err())
}

fn replace(old: &str, new: &str) -> UserChange {
    UserChange::Replace(identifier(old), new_identity(new))
}

#[test]
fn create_stores_the_given_fields() {
    let mut first = new_identity("email:Joe@EXAMPLE.com");
    first.verification =
        Some(Verification { time: Timestamp::from_millis(5), by: "letter".to_owned() });
    let attributes = [("a".to_owned(), Value::Int(1))].into();
    let new_user =
        NewUser { display_name: "Joe".to_owned(), identities: vec![first.clone()], attributes };
    let mutation = mutation(UserChange::Create(new_user.clone()));
    let user = apply(&mutation, None).unwrap();
    assert_eq!((user.id, &user.tenant), (id(1), &Tenant::DEFAULT));
    assert_eq!((user.create_time, user.update_time), (mutation.now.time, mutation.now.time));
    assert_eq!((user.display_name, user.attributes), (new_user.display_name, new_user.attributes));
    let identity = &user.identities[0];
    assert_eq!(
        (&identity.identifier, identity.display.as_str()),
        (&first.identifier, "Joe@EXAMPLE.com")
    );
    assert_eq!((identity.link_time, identity.rules_version), (mutation.now.time, RULES_VERSION));
    assert_eq!((&identity.verification, identity.primary), (&first.verification, true));
}

#[test]
fn creating_a_user_with_an_existing_id_fails() {
    let existing = user(&["handle:joe"]);
    let elsewhere = User { tenant: Tenant::parse("other").unwrap(), ..existing.clone() };
    for before in [existing, elsewhere] {
        let outcome = apply(&mutation(UserChange::Create(NewUser::default())), Some(&before));
        assert!(matches!(outcome, Err(Error::Internal(_))), "{outcome:?}");
    }
}

#[test]
fn a_user_of_another_tenant_is_not_found() {
    let elsewhere = User { tenant: Tenant::parse("other").unwrap(), ..user(&["handle:joe"]) };
    let unlink = Mutation {
        etag: Some("wrong".to_owned()),
        ..mutation(UserChange::Unlink(identifier("handle:joe")))
    };
    assert_eq!(error_text(apply(&unlink, Some(&elsewhere))), "UserNotFound");
    assert_eq!(error_text(apply(&unlink, None)), "UserNotFound");
}

/// An error reveals nothing that an earlier check would have hidden.
#[test]
fn checks_run_in_a_fixed_order() {
    let full = user(&["handle:a", "handle:b"]);
    let limits = Limits { identities: 2, attributes: 0, ..Limits::default() };
    let unlink = Mutation { limits, ..mutation(UserChange::Unlink(identifier("handle:x"))) };
    let stale = Mutation { etag: Some("wrong".to_owned()), ..unlink.clone() };
    assert_eq!(error_text(apply(&stale, Some(&full))), "EtagMismatch");
    assert_eq!(error_text(apply(&unlink, Some(&full))), "NotOwned");
    let link = Mutation {
        etag: Some(full.etag()),
        limits,
        ..mutation(UserChange::Link(new_identity("handle:c")))
    };
    assert_eq!(
        error_text(apply(&link, Some(&full))),
        r#"TooMany { what: "identities", limit: 2, count: 3 }"#
    );
}

/// A user above its limits, which were lowered, may shrink but not grow.
#[test]
fn limits_reject_only_growth() {
    let large = user(&["handle:a", "handle:b"]);
    let limits = Limits { bytes: 300, ..Limits::default() };
    let unlink = Mutation { limits, ..mutation(UserChange::Unlink(identifier("handle:a"))) };
    assert_eq!(apply(&unlink, Some(&large)).unwrap().identities.len(), 1);
    let link = Mutation { limits, ..mutation(UserChange::Link(new_identity("handle:c"))) };
    let refused = error_text(apply(&link, Some(&large)));
    assert!(refused.starts_with(r#"TooMany { what: "bytes", limit: 300, count: "#), "{refused}");
}

#[test]
fn linking_again_only_verifies_the_identity() {
    let verification = |millis| {
        Some(Verification { time: Timestamp::from_millis(millis), by: "again".to_owned() })
    };
    let link_again = |millis, before: &User| {
        let mut again = new_identity("handle:JOE");
        again.verification = verification(millis);
        apply(&mutation(UserChange::Link(again)), Some(before)).unwrap()
    };
    let before = user(&["handle:joe"]);
    let mut verified = before.clone();
    verified.identities[0].verification = verification(9);
    verified.update_time = Timestamp::from_millis(2000);
    assert_eq!(link_again(9, &before), verified);
    assert_eq!(link_again(10, &verified), verified, "the first verification stays");
    assert_eq!(
        apply(&mutation(UserChange::Link(new_identity("handle:JOE"))), Some(&verified)).unwrap(),
        verified
    );
}

#[test]
fn replacing_keeps_the_position_and_the_primary_mark() {
    let before = user(&["handle:a", "handle:b", "email:a@example.com"]);
    let after = apply(&mutation(replace("handle:a", "handle:c")), Some(&before)).unwrap();
    assert_eq!(names(&after), ["handle:c", "handle:b", "email:a@example.com"]);
    assert_eq!(primaries(&after), [true, false, true]);
    let after = apply(&mutation(replace("handle:b", "handle:c")), Some(&before)).unwrap();
    assert_eq!(primaries(&after), [true, false, true]);
    let after =
        apply(&mutation(replace("handle:a", "email:b@example.com")), Some(&before)).unwrap();
    assert_eq!(names(&after), ["email:b@example.com", "handle:b", "email:a@example.com"]);
    assert_eq!(primaries(&after), [false, true, true]);
}

#[test]
fn replacing_by_an_owned_identity_moves_the_primary_mark() {
    let before = user(&["handle:a", "handle:b", "handle:c", "email:a@example.com"]);
    let after = apply(&mutation(replace("handle:a", "handle:c")), Some(&before)).unwrap();
    assert_eq!(names(&after), ["handle:b", "handle:c", "email:a@example.com"]);
    assert_eq!(primaries(&after), [false, true, true]);
    let after = apply(&mutation(replace("handle:b", "handle:c")), Some(&before)).unwrap();
    assert_eq!(primaries(&after), [true, false, true]);
    let after =
        apply(&mutation(replace("handle:a", "email:a@example.com")), Some(&before)).unwrap();
    assert_eq!(names(&after), ["handle:b", "handle:c", "email:a@example.com"]);
    assert_eq!(primaries(&after), [true, false, true]);
}

#[test]
fn the_update_time_grows_with_changes_alone() {
    let before = user(&["handle:joe"]);
    let at = |millis, change| Mutation {
        now: Timestamp::from_millis(millis).into(),
        ..mutation(change)
    };
    let unchanged =
        apply(&at(9_000, UserChange::Link(new_identity("handle:joe"))), Some(&before)).unwrap();
    assert_eq!((unchanged.update_time, unchanged.etag()), (before.update_time, before.etag()));
    let later =
        apply(&at(9_000, UserChange::Link(new_identity("handle:new"))), Some(&before)).unwrap();
    assert_eq!((later.create_time, later.update_time.as_millis()), (before.create_time, 9_000));
    let earlier =
        apply(&at(1, UserChange::Unlink(identifier("handle:new"))), Some(&later)).unwrap();
    assert_eq!(earlier.update_time.as_millis(), 9_001, "later than the change before");
    assert_ne!(earlier.etag(), later.etag());
}

#[test]
fn a_conflict_names_the_field_of_the_key() {
    let taken = |change: UserChange, name: &str| {
        let mutation = mutation(change);
        let mut read_set = ReadSet::optimistic();
        let before = user(&["handle:old"]);
        let is_new = matches!(mutation.user_change(), Some(UserChange::Create(_)));
        read_set.add_user(id(1), Some(Record::new(before)).filter(|_| !is_new));
        let claim =
            Claim { owner: Some(id(2)), guard: false, hold: None, rules_version: RULES_VERSION };
        read_set.add_claim(IdentityKey::new("default", &identifier(name)), Some(claim));
        match mutation.decide(&read_set).unwrap_err() {
            Error::IdentityTaken { owner, field } if owner == id(2) => field,
            other => panic!("{other:?}"),
        }
    };
    let names = ["email:joe@example.com", "handle:@JOE", "social:GitHub/a,b"];
    let create = UserChange::Create(NewUser {
        identities: names.map(new_identity).into(),
        ..NewUser::default()
    });
    for (n, name) in names.into_iter().enumerate() {
        assert_eq!(taken(create.clone(), name), format!("user.identities[{n}].identifier"));
    }
    assert_eq!(taken(UserChange::Link(new_identity("handle:joe")), "handle:joe"), "identifier");
    assert_eq!(taken(replace("handle:old", "handle:joe"), "handle:joe"), "new_identifier");
}

/// Unread claims are requested once, unless the read set is optimistic.
#[test]
fn missing_reads_are_requested() {
    let link = mutation(UserChange::Link(new_identity("handle:new")));
    let key = IdentityKey::new("default", &identifier("handle:new"));
    let reads = |read_set: &ReadSet| match link.decide(read_set).unwrap() {
        Decision::NeedsReads(needs) => needs,
        Decision::Ready(write_set) => panic!("{write_set:?}"),
    };
    let mut read_set = ReadSet::default();
    assert_eq!(reads(&read_set), ReadRequest { users: vec![id(1)], ..ReadRequest::default() });
    assert_eq!(reads(&ReadSet::optimistic()).users, [id(1)]);
    read_set.add_user(id(1), Some(Record::new(user(&["handle:joe"]))));
    assert_eq!(
        reads(&read_set),
        ReadRequest { claims: vec![key.clone()], ..ReadRequest::default() }
    );
    assert_eq!(
        link.needs(),
        ReadRequest { users: vec![id(1)], claims: vec![key.clone()], ..ReadRequest::default() }
    );
    read_set.add_claim(key.clone(), None);
    let Decision::Ready(write_set) = link.decide(&read_set).unwrap() else { panic!() };
    let claim =
        Claim { owner: Some(id(1)), guard: false, hold: None, rules_version: RULES_VERSION };
    assert_eq!(write_set.users().map(Record::id).collect::<Vec<_>>(), [id(1)]);
    assert_eq!(write_set.writes[1..], [Write::Claim(key, ClaimWrite::Insert(claim))]);
    assert_eq!(write_set.subject, Some(id(1)));
}

#[test]
fn a_mutation_without_effect_writes_nothing() {
    let mut read_set = ReadSet::default();
    read_set.add_user(id(1), Some(Record::new(user(&["handle:joe"]))));
    let Decision::Ready(write_set) =
        mutation(UserChange::Link(new_identity("handle:JOE"))).decide(&read_set).unwrap()
    else {
        panic!()
    };
    assert!(write_set.writes.is_empty());
    assert_eq!(write_set.into_outcome().into_user().unwrap(), user(&["handle:joe"]));
}

fn any_change() -> impl Strategy<Value = UserChange> {
    let new = || any_identifier().prop_map(|identifier| new_identity(&identifier.to_string()));
    prop_oneof![
        new().prop_map(UserChange::Link),
        any_identifier().prop_map(UserChange::Unlink),
        (any_identifier(), new()).prop_map(|(old, new)| UserChange::Replace(old, new)),
        any_identifier().prop_map(|identifier| UserChange::Verify(identifier, None)),
        ".{0,2}".prop_map(|name| UserChange::Update(
            Update::from_mask(None, name, Default::default()).unwrap()
        )),
    ]
}

proptest! {
    /// After any change, identifiers are distinct and each kind has a primary identity: one, if it
    /// had at most one before.
    #[test]
    fn users_stay_well_formed(
        before in any_user(),
        mut change in any_change(),
        own in any::<prop::sample::Index>(),
    ) {
        if !before.identities.is_empty()
            && let UserChange::Unlink(name)
            | UserChange::Replace(name, _)
            | UserChange::Verify(name, _) = &mut change
        {
            *name = own.get(&before.identities).identifier.clone();
        }

        let before = User { state: State::Active, ..before };
        let kind = MutationKind::User(before.id, change);
        let tenant = before.tenant.clone();
        let mutation = Mutation { tenant, kind, ..mutation(UserChange::Disable) };
        let Ok(after) = apply(&mutation, Some(&before)) else { return Ok(()) };
        let again = apply(&mutation, Some(&before)).unwrap();
        prop_assert_eq!(again, after.clone(), "not a pure function");

        let mut names = names(&after);
        names.sort_unstable();
        names.dedup();
        prop_assert_eq!(names.len(), after.identities.len(), "an identifier is listed twice");
        for kind in Kind::ALL {
            let primaries = |user: &User| {
                let is_counted =
                    |one: &&super::Identity| one.primary && one.identifier.kind() == kind;
                user.identities.iter().filter(is_counted).count()
            };
            let has_kind = after.identities.iter().any(|one| one.identifier.kind() == kind);
            prop_assert!(primaries(&after) <= primaries(&before).max(1), "a second primary");
            prop_assert!(!has_kind || primaries(&after) > 0, "no primary identity");
        }
        let changed = after != before;
        prop_assert!(after.update_time >= before.update_time);
        let is_later = after.update_time > before.update_time;
        prop_assert!(!changed || is_later || after.update_time == Timestamp::MAX);
        let fixed = |user: User| (user.id, user.tenant, user.create_time);
        prop_assert_eq!(fixed(after), fixed(before));
    }
}
