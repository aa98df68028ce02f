//! Tests of the pure rules. The conformance suite tests the rest with stores.

use std::collections::BTreeMap;

use locality_uuid::LocalityId;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::error::{Error, Invalid};
use super::mutation::{Mutation, MutationKind, UserChange};
use crate::limits::Limits;
use crate::model::attribute::Value;
use crate::model::claim::{Claim, ClaimWrite};
use crate::model::new_user::{NewIdentity, NewUser};
use crate::model::record::Record;
use crate::model::tenant::Tenant;
use crate::model::unknown::Unknown;
use crate::model::user::{Identity, State, User, Verification};
use crate::mutation::read_set::{Decision, ReadRequest, ReadSet, Write};
use crate::timestamp::Timestamp;
use polynym_identifier::{Identifier, RULES_VERSION, RawIdentifier};

mod checks;
mod claims;
mod etags;
mod merge_links;
mod mutations;
mod policies;
mod purges;
mod undoing;
mod updates;
mod wire;

/// The time when the tests' users are created, in milliseconds.
const CREATED: i64 = 1_000;

fn identifier(name: &str) -> Identifier {
    Identifier::parse(RawIdentifier::from_text(name).unwrap()).unwrap()
}

fn id(n: u8) -> LocalityId {
    LocalityId::from([n; 16])
}

fn new_identity(name: &str) -> NewIdentity {
    let display = RawIdentifier::from_text(name).unwrap().typed().to_owned();
    NewIdentity::new(identifier(name), display)
}

/// A mutation of user 1 of the default tenant, a second after its creation.
fn mutation(change: UserChange) -> Mutation {
    Mutation::of_user(Tenant::DEFAULT, id(1), Timestamp::from_millis(CREATED + 1_000), change)
}

/// The user after a mutation without conflicting claims.
fn apply(mutation: &Mutation, before: Option<&User>) -> Result<User, Error> {
    let mut read_set = ReadSet::optimistic();
    read_set.add_user(mutation.user_id().unwrap(), before.map(|user| Record::new(user.clone())));
    match mutation.decide(&read_set)? {
        Decision::Ready(write_set) => write_set.into_outcome().into_user(),
        Decision::NeedsReads(needs) => panic!("{needs:?}"),
    }
}

/// User 1, who owns `names`.
fn user(names: &[&str]) -> User {
    let new_user = NewUser {
        identities: names.iter().map(|name| new_identity(name)).collect(),
        ..NewUser::default()
    };
    apply(
        &Mutation {
            now: Timestamp::from_millis(CREATED).into(),
            ..mutation(UserChange::Create(new_user))
        },
        None,
    )
    .unwrap()
}

fn names(user: &User) -> Vec<String> {
    user.identities.iter().map(|identity| identity.identifier.to_string()).collect()
}

fn primaries(user: &User) -> Vec<bool> {
    user.identities.iter().map(|identity| identity.primary).collect()
}

/// Asserts the kind and the field of the error.
#[track_caller]
fn invalid<T: std::fmt::Debug>(outcome: Result<T, Error>, wanted: Invalid, path: &str) {
    match outcome {
        Err(Error::Invalid { what, field, .. }) => {
            assert_eq!((what, field.as_str()), (wanted, path))
        }
        other => panic!("not rejected as {wanted:?}: {other:?}"),
    }
}

fn any_time() -> impl Strategy<Value = Timestamp> {
    (Timestamp::MIN.as_millis()..=Timestamp::MAX.as_millis()).prop_map(Timestamp::from_millis)
}

fn any_identifier() -> impl Strategy<Value = Identifier> {
    let name = prop_oneof![
        "email:[a-c]{1,2}@[a-c]{1,2}\\.[a-c]{2}",
        "handle:[a-cé]{1,3}",
        "phone:\\+1415555230[0-9]",
        "social:[a-c]{1,2}/[a-cA-C/,:é]{1,3}",
        "social:https%3A%2F%2F[a-c]{1,2}(%2F[a-c]{0,2})?/[a-cA-C/,:é]{1,3}",
        "url:https://[a-c]{1,2}\\.com/[a-c/]{0,3}",
    ];
    name.prop_map(|name| identifier(&name))
}

fn any_identity() -> impl Strategy<Value = Identity> {
    let verification = proptest::option::of(
        (any_time(), ".{0,4}").prop_map(|(time, by)| Verification { time, by }),
    );
    let import_time = proptest::option::of(any_time());
    let times = (any_time(), import_time);
    (any_identifier(), ".{1,6}", times, verification, any::<bool>()).prop_map(
        |(identifier, display, (link_time, import_time), verification, primary)| Identity {
            identifier,
            display,
            rules_version: RULES_VERSION,
            link_time,
            import_time,
            verification,
            primary,
            unknown: Unknown::default(),
        },
    )
}

fn any_value() -> impl Strategy<Value = Value> {
    let finite = any::<f64>().prop_filter("attributes are finite", |number| number.is_finite());
    prop_oneof![
        ".{0,8}".prop_map(Value::String),
        any::<i64>().prop_map(Value::Int),
        finite.prop_map(Value::Double),
        any::<bool>().prop_map(Value::Bool),
        any_time().prop_map(Value::Time),
        vec(".{0,4}", 0..4).prop_map(Value::List),
    ]
}

fn any_attributes() -> impl Strategy<Value = BTreeMap<String, Value>> {
    btree_map("[a-c][a-c_.-]{0,2}", any_value(), 0..5)
}

fn any_state() -> impl Strategy<Value = State> {
    prop_oneof![
        3 => Just(State::Active),
        1 => Just(State::Disabled),
        1 => (any_time(), any_time())
            .prop_map(|(delete_time, purge_time)| State::Deleted { delete_time, purge_time }),
        1 => any::<[u8; 16]>().prop_map(|id| State::Merged { into: id.into() }),
    ]
}

/// A user with any content and distinct identifiers.
fn any_user() -> impl Strategy<Value = User> {
    let tenant = prop_oneof![
        Just(Tenant::DEFAULT),
        "[a-z0-9][a-z0-9-]{0,4}".prop_map(|name| Tenant::parse(&name).unwrap())
    ];
    let times = (any_time(), any_time());
    (
        any::<[u8; 16]>(),
        tenant,
        ".{0,8}",
        vec(any_identity(), 0..6),
        any_attributes(),
        any_state(),
        times,
    )
        .prop_map(
            |(
                id,
                tenant,
                display_name,
                mut identities,
                attributes,
                state,
                (create_time, update_time),
            )| {
                let mut seen = std::collections::HashSet::new();
                identities.retain(|identity: &Identity| seen.insert(identity.identifier.clone()));
                let (id, unknown) = (id.into(), Unknown::default());
                User {
                    id,
                    tenant,
                    display_name,
                    identities,
                    attributes,
                    state,
                    create_time,
                    update_time,
                    unknown,
                }
            },
        )
}
