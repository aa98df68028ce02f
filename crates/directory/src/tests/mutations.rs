//! [`Mutation::decide`]: what a user becomes, and what is refused first.

use proptest::prelude::*;

use super::{
    Claim, ClaimWrite, Decision, Error, Limits, Mutation, MutationKind, NewUser, ReadRequest,
    ReadSet, Record, State, Tenant, Timestamp, UserChange, Value, Verification, Write,
    any_identifier, any_user, apply, draft, id, identifier, mutation, names, primaries, user,
};
use crate::model::user::User;
use crate::mutation::update::Update;
use polynym_identifier::{IdentityKey, Kind, RULES_VERSION};

/// The refusal as text: errors have causes and do not compare.
fn refusal(outcome: Result<User, Error>) -> String {
    format!("{:?}", outcome.unwrap_err())
}

fn replace(old: &str, new: &str) -> UserChange {
    UserChange::Replace(identifier(old), draft(new))
}

#[test]
fn create_makes_the_user_of_the_draft() {
    let mut first = draft("email:Joe@EXAMPLE.com");
    first.verification =
        Some(Verification { time: Timestamp::from_millis(5), by: "letter".to_owned() });
    let attributes = [("a".to_owned(), Value::Int(1))].into();
    let draft =
        NewUser { display_name: "Joe".to_owned(), identities: vec![first.clone()], attributes };
    let mutation = mutation(UserChange::Create(draft.clone()));
    let user = apply(&mutation, None).unwrap();
    assert_eq!((user.id, &user.tenant), (id(1), &Tenant::DEFAULT));
    assert_eq!((user.create_time, user.update_time), (mutation.time, mutation.time));
    assert_eq!((user.display_name, user.attributes), (draft.display_name, draft.attributes));
    let identity = &user.identities[0];
    assert_eq!(
        (&identity.identifier, identity.display.as_str()),
        (&first.identifier, "Joe@EXAMPLE.com")
    );
    assert_eq!((identity.link_time, identity.rules_version), (mutation.time, RULES_VERSION));
    assert_eq!((&identity.verification, identity.primary), (&first.verification, true));
}

#[test]
fn an_id_is_never_given_twice() {
    let there = user(&["handle:joe"]);
    let elsewhere = User { tenant: Tenant::parse("other").unwrap(), ..there.clone() };
    for before in [there, elsewhere] {
        let outcome = apply(&mutation(UserChange::Create(NewUser::default())), Some(&before));
        assert!(matches!(outcome, Err(Error::Internal(_))), "{outcome:?}");
    }
}

#[test]
fn a_user_of_another_tenant_is_nobody() {
    let elsewhere = User { tenant: Tenant::parse("other").unwrap(), ..user(&["handle:joe"]) };
    let unlink = Mutation {
        etag: Some("wrong".to_owned()),
        ..mutation(UserChange::Unlink(identifier("handle:joe")))
    };
    assert_eq!(refusal(apply(&unlink, Some(&elsewhere))), "UserNotFound");
    assert_eq!(refusal(apply(&unlink, None)), "UserNotFound");
}

/// A refusal reveals nothing that an earlier check would have hidden.
#[test]
fn refusals_come_in_one_order() {
    let full = user(&["handle:a", "handle:b"]);
    let limits = Limits { identities: 2, attributes: 0, ..Limits::default() };
    let unlink = Mutation { limits, ..mutation(UserChange::Unlink(identifier("handle:x"))) };
    let stale = Mutation { etag: Some("wrong".to_owned()), ..unlink.clone() };
    assert_eq!(refusal(apply(&stale, Some(&full))), "EtagMismatch");
    assert_eq!(refusal(apply(&unlink, Some(&full))), "NotOwned");
    let link = Mutation {
        etag: Some(full.etag()),
        limits,
        ..mutation(UserChange::Link(draft("handle:c")))
    };
    assert_eq!(
        refusal(apply(&link, Some(&full))),
        r#"TooMany { what: "identities", limit: 2, count: 3 }"#
    );
}

/// A user who is larger than allowed, as one is after the limit was lowered, may shrink and may not
/// grow.
#[test]
fn only_growth_is_refused() {
    let large = user(&["handle:a", "handle:b"]);
    let limits = Limits { bytes: 300, ..Limits::default() };
    let unlink = Mutation { limits, ..mutation(UserChange::Unlink(identifier("handle:a"))) };
    assert_eq!(apply(&unlink, Some(&large)).unwrap().identities.len(), 1);
    let link = Mutation { limits, ..mutation(UserChange::Link(draft("handle:c"))) };
    let refused = refusal(apply(&link, Some(&large)));
    assert!(refused.starts_with(r#"TooMany { what: "bytes", limit: 300, count: "#), "{refused}");
}

#[test]
fn link_again_keeps_the_identity_but_for_verifying_it() {
    let verification = |millis| {
        Some(Verification { time: Timestamp::from_millis(millis), by: "again".to_owned() })
    };
    let link_again = |millis, before: &User| {
        let mut again = draft("handle:JOE");
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
        apply(&mutation(UserChange::Link(draft("handle:JOE"))), Some(&verified)).unwrap(),
        verified
    );
}

#[test]
fn replace_keeps_the_place_and_the_mark() {
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
fn replace_by_an_identity_of_ones_own_passes_the_mark_on() {
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
fn update_time_moves_with_changes_alone_and_never_back() {
    let before = user(&["handle:joe"]);
    let at = |millis, change| Mutation { time: Timestamp::from_millis(millis), ..mutation(change) };
    let unchanged =
        apply(&at(9_000, UserChange::Link(draft("handle:joe"))), Some(&before)).unwrap();
    assert_eq!((unchanged.update_time, unchanged.etag()), (before.update_time, before.etag()));
    let later = apply(&at(9_000, UserChange::Link(draft("handle:new"))), Some(&before)).unwrap();
    assert_eq!((later.create_time, later.update_time.as_millis()), (before.create_time, 9_000));
    let earlier =
        apply(&at(1, UserChange::Unlink(identifier("handle:new"))), Some(&later)).unwrap();
    assert_eq!(earlier.update_time.as_millis(), 9_001, "later than the change before");
    assert_ne!(earlier.etag(), later.etag());
}

#[test]
fn a_refusal_names_the_field_of_the_key() {
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
    let create =
        UserChange::Create(NewUser { identities: names.map(draft).into(), ..NewUser::default() });
    for (n, name) in names.into_iter().enumerate() {
        assert_eq!(taken(create.clone(), name), format!("user.identities[{n}].identifier"));
    }
    assert_eq!(taken(UserChange::Link(draft("handle:joe")), "handle:joe"), "identifier");
    assert_eq!(taken(replace("handle:old", "handle:joe"), "handle:joe"), "new_identifier");
}

/// Unread claims are requested once, unless the read set is optimistic.
#[test]
fn what_is_missing_is_asked_for() {
    let link = mutation(UserChange::Link(draft("handle:new")));
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
fn what_changes_nothing_writes_nothing() {
    let mut read_set = ReadSet::default();
    read_set.add_user(id(1), Some(Record::new(user(&["handle:joe"]))));
    let Decision::Ready(write_set) =
        mutation(UserChange::Link(draft("handle:JOE"))).decide(&read_set).unwrap()
    else {
        panic!()
    };
    assert!(write_set.writes.is_empty());
    assert_eq!(write_set.into_outcome().into_user().unwrap(), user(&["handle:joe"]));
}

fn any_change() -> impl Strategy<Value = UserChange> {
    let draft = || any_identifier().prop_map(|identifier| draft(&identifier.to_string()));
    prop_oneof![
        draft().prop_map(UserChange::Link),
        any_identifier().prop_map(UserChange::Unlink),
        (any_identifier(), draft()).prop_map(|(old, new)| UserChange::Replace(old, new)),
        any_identifier().prop_map(|identifier| UserChange::Verify(identifier, None)),
        ".{0,2}".prop_map(|name| UserChange::Update(
            Update::from_mask(None, name, Default::default()).unwrap()
        )),
    ]
}

proptest! {
    /// Whatever a user was, after a change no identifier is listed twice and each kind has a
    /// primary identity, one where it had at most one before.
    #[test]
    fn users_stay_well_formed(
        before in any_user(),
        change in any_change(),
        own in any::<prop::sample::Index>(),
    ) {
        let mut change = change;
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
            let of_kind = |user: &User, is_counted: fn(&super::Identity) -> bool| {
                let counted = user.identities.iter().filter(|own| own.identifier.kind() == kind);
                counted.filter(|own| is_counted(own)).count()
            };
            let marked = |user: &User| of_kind(user, |own| own.primary);
            let listed = of_kind(&after, |_| true);
            prop_assert!(marked(&after) <= marked(&before).max(1), "a second primary identity");
            prop_assert!(listed == 0 || marked(&after) > 0, "no primary identity");
        }
        let changed = after != before;
        prop_assert!(after.update_time >= before.update_time);
        let is_later = after.update_time > before.update_time;
        prop_assert!(!changed || is_later || after.update_time == Timestamp::MAX);
        let fixed = |user: User| (user.id, user.tenant, user.create_time);
        prop_assert_eq!(fixed(after), fixed(before));
    }
}
