//! Numbered users, for tests that write many users and look them up later.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::LocalityId;
use polynym_directory::{
    BulkAction, BulkChange, BulkStep, Consistency, Decision, EncodedUser, Error, ItemResult,
    LookUps, Mutation, MutationCall, MutationKind, NewIdentity, NewUser, Now, Policies, Purpose,
    ReadSet, RequestContext, Tenant, TenantChange, Timestamp, User, UserChange, Value, View,
};
use polynym_identifier::{Identifier, IdentityKey, RawIdentifier};

/// The id of user `n`.
pub fn id(n: usize) -> LocalityId {
    format!("{:08x}-0001-b000-0001-000000000000", n as u32).parse().unwrap()
}

/// The identifiers of user `n`.
fn identifiers(n: usize) -> [Identifier; 2] {
    let email = format!("user{n}@example.com");
    let handle = format!("user{n}");
    [RawIdentifier::Email(&email), RawIdentifier::Handle(&handle)]
        .map(|raw| Identifier::parse(raw).unwrap())
}

/// The email of user `n`.
pub fn email(n: usize) -> Identifier {
    let [email, _] = identifiers(n);
    email
}

/// The context of a call of this method without a caller.
pub fn context(tenant: Tenant, method: &'static str) -> RequestContext<'static> {
    let now = Now::certain(Timestamp::now());
    RequestContext { tenant, caller: "", method, request_id: "", purpose: Purpose::default(), now }
}

/// A mutating call of this method without a caller.
pub fn call(tenant: Tenant, method: &'static str) -> MutationCall<'static> {
    context(tenant, method).into()
}

/// A mutation of the default tenant.
pub fn tenant_mutation(change: TenantChange) -> Mutation {
    mutation_of(MutationKind::Tenant(change))
}

/// A mutation of a user in a tenant without hold times: a released identifier is free at once, and
/// the user never reaches the limit of holds.
pub fn mutation(user_id: LocalityId, change: UserChange) -> Mutation {
    mutation_of(MutationKind::User(user_id, change))
}

/// A bulk change of the default tenant that disables all users, and is running.
pub fn bulk_change(id: &str) -> BulkChange {
    let new = BulkChange::new(Tenant::DEFAULT, id, BulkAction::Disable, Timestamp::now());
    BulkChange { caller: "ana".to_owned(), ..new }
}

/// The mutation that starts [`bulk_change`].
pub fn bulk_start(id: &str) -> Mutation {
    mutation_of(MutationKind::Bulk(
        id.to_owned(),
        BulkStep::Start(Box::new(bulk_change(id)), Arc::default()),
    ))
}

/// A mutation of any kind in a tenant without hold times.
pub fn mutation_of(kind: MutationKind) -> Mutation {
    let policies = Arc::new(Policies { holds: BTreeMap::new(), ..Policies::default() });
    let time = Timestamp::from_millis(1_767_225_600_000);
    Mutation { policies, ..Mutation::new(Tenant::DEFAULT, time, kind) }
}

pub fn identity(identifier: Identifier) -> NewIdentity {
    let display = identifier.canonical().to_owned();
    NewIdentity::new(identifier, display)
}

/// The mutation that creates user `n`.
pub fn creation(n: usize) -> Mutation {
    let identities = identifiers(n).map(identity).into();
    mutation(
        id(n),
        UserChange::Create(NewUser {
            display_name: format!("User {n}"),
            identities,
            ..NewUser::default()
        }),
    )
}

/// The mutation that creates user `n` with 400 KiB of attributes.
pub fn large_creation(n: usize) -> Mutation {
    let identities = identifiers(n).map(identity).into();
    let attributes =
        BTreeMap::from([("notes".to_owned(), Value::List(vec!["x".repeat(4_096); 100]))]);
    mutation(id(n), UserChange::Create(NewUser { identities, attributes, ..NewUser::default() }))
}

/// The keys of user `n`.
pub fn keys(n: usize) -> [IdentityKey; 2] {
    identifiers(n).map(|identifier| IdentityKey::new("default", &identifier))
}

/// User `n` right after its creation.
pub fn user(n: usize) -> User {
    let Decision::Ready(write_set) = creation(n).decide(&ReadSet::optimistic()).unwrap() else {
        panic!()
    };
    write_set.into_outcome().into_user().unwrap()
}

/// Looks user `n` up by its identifiers and its id. Returns true if all three look-ups find it,
/// false if none does, and the first error otherwise. Panics on a partial or a different result.
pub async fn look_up(store: &(impl LookUps + ?Sized), n: usize) -> Result<bool, Error> {
    let mut found_users = Vec::new();
    for key in keys(n) {
        let resolved =
            store.resolve(&[key], Consistency::Latest, View::Full, Duration::ZERO).await?;
        for found in resolved.found {
            found_users.push(found?.map(|found| found.user));
        }
    }

    for found in store.get(&Tenant::DEFAULT, &[id(n)], View::Full).await? {
        found_users.push(found?);
    }

    let found = found_users;
    let expected = EncodedUser::from_user(&user(n));
    let matches = found.iter().flatten().filter(|found| **found == expected).count();
    assert!(found.iter().flatten().count() == matches, "user {n} differs: {found:?}");
    assert!(matches == 0 || matches == 3, "user {n} is found in part: {found:?}");
    Ok(matches == 3)
}

/// Unwraps all items of a batch.
pub fn all<T>(items: Vec<ItemResult<T>>) -> Vec<Option<T>> {
    items.into_iter().map(Result::unwrap).collect()
}
