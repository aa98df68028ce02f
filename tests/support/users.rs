//! Users by number, for tests that write many and look for them later.

use std::collections::BTreeMap;
use std::sync::Arc;

use locality_uuid::LocalityId;
use polynym::directory::{
    Consistency, Decision, EncodedUser, Error, ItemResult, Mutation, MutationCall, MutationKind,
    NewIdentity, NewUser, Now, Policies, ReadSet, RequestContext, Store, Tenant, TenantChange,
    Timestamp, User, UserChange, Value,
};
use polynym::identifier::{Identifier, IdentityKey, RawIdentifier, Rules};

/// The id of user `n`.
pub fn id(n: usize) -> LocalityId {
    format!("{:08x}-0001-b000-0001-000000000000", n as u32).parse().unwrap()
}

/// What user `n` owns.
fn identifiers(n: usize) -> [Identifier; 2] {
    let email = format!("user{n}@example.com");
    let handle = format!("user{n}");
    [RawIdentifier::Email(&email), RawIdentifier::Handle(&handle)]
        .map(|raw| Identifier::parse(raw).unwrap())
}

/// An e-mail address of user `n`.
pub fn email(n: usize) -> Identifier {
    let [email, _] = identifiers(n);
    email
}

/// The circumstances of a call of this method, by nobody.
pub fn context(tenant: Tenant, method: &'static str) -> RequestContext<'static> {
    let now = Now::certain(Timestamp::now());
    RequestContext { tenant, caller: "", method, request_id: "", now }
}

/// A mutating call of this method, by nobody.
pub fn call(tenant: Tenant, method: &'static str) -> MutationCall<'static> {
    context(tenant, method).into()
}

/// A mutation of the default tenant.
pub fn tenant_mutation(change: TenantChange) -> Mutation {
    mutation_of(MutationKind::Tenant(change))
}

/// A mutation of a tenant that holds nothing: what is given up is free, and no user ever has too
/// much held for it.
pub fn mutation(user_id: LocalityId, change: UserChange) -> Mutation {
    mutation_of(MutationKind::User(user_id, change))
}

/// The same of any kind.
pub fn mutation_of(kind: MutationKind) -> Mutation {
    let policies = Arc::new(Policies { holds: BTreeMap::new(), ..Policies::default() });
    let time = Timestamp::from_millis(1_767_225_600_000);
    Mutation { policies, ..Mutation::new(Tenant::DEFAULT, time, kind) }
}

/// The same mutation by the first version of the rules, which older stores have.
pub fn by_first_rules(mutation: Mutation) -> Mutation {
    let mut mutation = Mutation { rules: Rules::FIRST, ..mutation };
    let drafts = match &mut mutation.kind {
        MutationKind::User(_, UserChange::Create(draft)) => &mut draft.identities[..],
        MutationKind::User(_, UserChange::Link(draft) | UserChange::Replace(_, draft)) => {
            std::slice::from_mut(draft)
        }
        _ => &mut [],
    };
    for draft in drafts {
        draft.rules_version = Rules::FIRST.version();
    }
    mutation
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

/// User `n` as it is after its creation.
pub fn user(n: usize) -> User {
    let Decision::Ready(write_set) = creation(n).decide(&ReadSet::optimistic()).unwrap() else {
        panic!()
    };
    write_set.into_outcome().into_user().unwrap()
}

/// Looks for user `n` by everything that finds it, and fails if anything else is found: answers
/// whether it is there altogether, or the error of the first look-up that failed.
pub async fn look_up(store: &dyn Store, n: usize) -> Result<bool, Error> {
    let mut found_users = Vec::new();
    for key in keys(n) {
        let resolved = store.resolve(&[key], Consistency::Latest).await?;
        for found in resolved.found {
            found_users.push(found?.map(|found| found.user));
        }
    }
    for found in store.get(&Tenant::DEFAULT, &[id(n)]).await? {
        found_users.push(found?);
    }
    let found = found_users;
    let wanted = EncodedUser::of(&user(n));
    let there = found.iter().flatten().filter(|found| **found == wanted).count();
    assert!(found.iter().flatten().count() == there, "user {n} is another one: {found:?}");
    assert!(there == 0 || there == 3, "user {n} is there in part: {found:?}");
    Ok(there == 3)
}

/// The answers of a look-up of which none failed.
pub fn all<T>(items: Vec<ItemResult<T>>) -> Vec<Option<T>> {
    items.into_iter().map(Result::unwrap).collect()
}
