//! Golden stores: the content of a store after a fixed list of mutations in which every stored form
//! occurs, with all of its fields in use. Ids and times are fixed, so the same program always
//! writes the same bytes.

mod inboxes;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::{Generator, Mode};
use polynym_directory::{
    AccessPath, Backend, ConflictPolicy, Directory, IdempotencyKey, Limits, Mutation, MutationKind,
    Mutations, NewIdentity, NewUser, Policies, PolicyUpdate, Record, ResolveOptions, Search,
    SearchedUser, Tenant, TenantChange, Tenants, Timestamp, Update, UserChange, Value,
    Verification, View, search::elements,
};
use polynym_identifier::{Identifier, Kind, RULES_VERSION, RawIdentifier, Rejection, Rules};
use polynym_store_common::integrity::{CheckableStore, Finding, Observer, verify};

pub use inboxes::{entries, fill_inboxes, fill_shared_contents, set_inbox_policies};

use super::root;
use super::users::id;

/// 2100-01-01 in milliseconds: later than any test run, so no record has expired.
const TIME: i64 = 4_102_444_800_000;
/// The hold time of every kind of identifier.
const HOLD_TIME: Duration = Duration::from_secs(10 * 24 * 60 * 60);

/// The path of the golden file `name`.
pub fn file(name: &str) -> PathBuf {
    root().join("tests/golden").join(name)
}

/// Compares `text` with a golden file. `POLYNYM_GOLDEN=write` writes the file instead.
pub fn compare(name: &str, text: &str) {
    if writes() {
        std::fs::write(file(name), text).unwrap();
    }
    let golden = std::fs::read_to_string(file(name)).unwrap();
    let mut lines = golden.lines().zip(text.lines());
    if let Some((was, is)) = lines.find(|(was, is)| was != is) {
        panic!("a stored form of {name} changed from\n{was}\nto\n{is}");
    }
    assert_eq!(golden.lines().count(), text.lines().count(), "number of lines of {name}");
}

/// The rules version of identities that a later program wrote.
const LATER: u32 = RULES_VERSION + 1;

/// Normalisation rules of a later version: they remove dots before the `@` of an email.
pub fn later_rules() -> Rules {
    fn parse(raw: RawIdentifier<'_>) -> Result<Identifier, Rejection> {
        let identifier = Identifier::parse(raw)?;
        match identifier.canonical().split_once('@') {
            Some((local, domain)) if identifier.kind() == Kind::Email => {
                let canonical = format!("{}@{domain}", local.replace('.', ""));
                Ok(Identifier::from_canonical(Kind::Email, canonical))
            }
            _ => Ok(identifier),
        }
    }
    Rules::new(RULES_VERSION + 1, parse, Identifier::normalize)
}

/// Executes all mutations.
pub async fn fill(store: &(impl Mutations + Tenants)) {
    for (n, mutation) in mutations().into_iter().enumerate() {
        let tenant = store.tenant(&mutation.tenant).await.unwrap();
        let tenant_since = tenant.map(|tenant| tenant.create_time).unwrap_or_default();
        store
            .mutate(Mutation { tenant_since, ..mutation })
            .await
            .unwrap_or_else(|error| panic!("mutation {n}: {error:?}"));
    }
}

/// Returns all users of a store.
pub async fn records(store: &(impl Search + ?Sized)) -> Vec<Record> {
    store.scan(&Tenant::DEFAULT, None, 1_000).await.unwrap().into_readable().collect()
}

/// The rules versions of all identities.
fn versions(records: &[Record]) -> Vec<u32> {
    records
        .iter()
        .flat_map(|record| &record.user.identities)
        .map(|identity| identity.rules_version)
        .collect()
}

/// Asserts that all identities have the present rules version, except the one of a later program.
pub async fn of_the_present_rules(store: &impl Search) {
    let versions = versions(&records(store).await);
    assert_eq!(
        versions.iter().filter(|version| **version == RULES_VERSION).count(),
        versions.len() - 1
    );
    assert_eq!(versions.iter().filter(|version| **version == LATER).count(), 1);
}

/// Asserts that a golden store was renormalised to [`later_rules`].
pub async fn moved(store: Backend) {
    assert!(
        versions(&records(&*store.search).await)
            .iter()
            .all(|version| *version == later_rules().version())
    );

    let directory =
        Directory::new(store.clone(), Generator::new(Mode::Variable), Limits::default())
            .with_rules(later_rules());

    for typed in ["Ada.L@Example.com", "adal@example.com"] {
        let raw = Some(RawIdentifier::Email(typed));
        let (found, _) = directory
            .resolve(
                &Tenant::DEFAULT,
                raw,
                ResolveOptions { show_disabled: true, ..ResolveOptions::default() },
            )
            .await
            .unwrap();
        assert_eq!(found.user.decode().unwrap().id, id(1), "{typed}");
    }
}

/// Asserts that each user of a golden store is found by all that it can be searched by.
pub async fn searchable(store: &impl Search) {
    let mut searches = 0;
    for record in records(store).await {
        for (field, value) in elements(&record.user) {
            let path = AccessPath::Equals { field, value };
            let found =
                store.search(&Tenant::DEFAULT, &path, None, 1_000, View::Full).await.unwrap();
            let shown = SearchedUser::new(record.user.clone(), View::Full);
            assert!(found.users.contains(&Ok(shown)), "{path:?}");
            searches += 1;
        }
    }
    assert!(searches > 20, "{searches}");
}

/// Verifies and repairs a golden store: it must be clean.
pub async fn untouched(store: &impl CheckableStore) {
    struct None;
    impl Observer for None {
        fn at(&mut self, _: &'static str, _: u64, _: u64) {}
        fn found(&mut self, finding: &Finding) {
            panic!("{finding:?}");
        }
    }
    let summary = verify(store, true, &mut None).await.unwrap();
    assert!(summary.users > 5 && summary.is_clean(), "{summary:?}");
}

/// Returns true if golden files are to be rewritten.
pub fn writes() -> bool {
    std::env::var("POLYNYM_GOLDEN").is_ok_and(|mode| mode == "write")
}

fn time(n: usize) -> Timestamp {
    Timestamp::from_millis(TIME + 1_001 * n as i64)
}

fn identifier(name: &str) -> Identifier {
    Identifier::parse(RawIdentifier::from_text(name).unwrap()).unwrap()
}

fn unverified(name: &str) -> NewIdentity {
    let display = RawIdentifier::from_text(name).unwrap().typed().to_owned();
    NewIdentity::new(identifier(name), display)
}

fn verified(name: &str) -> NewIdentity {
    NewIdentity { verification: verification(), ..unverified(name) }
}

fn verification() -> Option<Verification> {
    Some(Verification { time: Timestamp::from_millis(TIME - 1), by: "a letter".to_owned() })
}

fn create(
    display_name: &str,
    identities: Vec<NewIdentity>,
    attributes: &[(&str, Value)],
) -> UserChange {
    let attributes =
        attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    UserChange::Create(NewUser { display_name: display_name.to_owned(), identities, attributes })
}

fn unlink(name: &str) -> UserChange {
    UserChange::Unlink(identifier(name))
}

fn set(edits: &[(&str, Value)]) -> UserChange {
    let (paths, values): (Vec<_>, BTreeMap<_, _>) = edits
        .iter()
        .map(|(name, value)| (format!("attributes.{name}"), ((*name).to_owned(), value.clone())))
        .unzip();
    UserChange::Update(Update::from_mask(Some(&paths), String::new(), values).unwrap())
}

fn text(value: &str) -> Value {
    Value::String(value.to_owned())
}

/// All mutations with their tenants, in order.
fn changes() -> Vec<(Tenant, MutationKind)> {
    let user_mutation = |(user, change)| (Tenant::DEFAULT, MutationKind::User(id(user), change));
    let users = [users_of_every_kind(), merges(), deleted_and_purged()]
        .into_iter()
        .flatten()
        .map(user_mutation);
    tenants().into_iter().chain(users).collect()
}

fn tenants() -> Vec<(Tenant, MutationKind)> {
    let all = PolicyUpdate {
        holds: Kind::ALL.map(|kind| (kind, HOLD_TIME + Duration::from_millis(5))).into(),
        hide_unverified: Some(true),
        verified_wins: Some(true),
        keep_primary: Some(true),
        keep_last: Some(true),
        allow_lookalikes: Some(true),
        restore_window: Some(HOLD_TIME),
        undo_window: Some(HOLD_TIME),
        ..PolicyUpdate::default()
    };

    let set = |name, update| {
        (Tenant::parse(name).unwrap(), MutationKind::Tenant(TenantChange::Set(update)))
    };
    vec![set("default", PolicyUpdate::default()), set("acme", all)]
}

/// Users with every kind of identity and attribute, with guards, holds and identities of later
/// rules.
fn users_of_every_kind() -> Vec<(usize, UserChange)> {
    let attributes = [
        ("string", text("text")),
        ("int", Value::Int(-5)),
        ("double", Value::Double(0.5)),
        ("bool", Value::Bool(true)),
        ("time", Value::Time(Timestamp::from_millis(TIME + 1))),
        ("list", Value::List(vec!["a".to_owned(), "b".to_owned()])),
    ];

    let identities = vec![
        verified("email:Ada.L@Example.com"),
        NewIdentity { primary: true, ..unverified("email:ada@example.org") },
        unverified("handle:ѕсоре"),
        unverified("handle:ëxo"),
        unverified("phone:+14155552300"),
        unverified("social:GitHub/583231"),
        unverified("url:https://example.com/~ada/"),
    ];

    let later = NewIdentity { rules_version: LATER, ..unverified("handle:later") };
    vec![
        (1, create("Ada", identities, &attributes)),
        (1, unlink("handle:ëxo")),
        (1, unlink("email:ada@example.org")),
        (2, create("Bob", vec![unverified("email:bob@example.com"), later], &[])),
        (2, unlink("handle:later")),
        (2, UserChange::Link(NewIdentity { rules_version: LATER, ..unverified("handle:latest") })),
        (2, UserChange::Disable),
    ]
}

/// A merge that can be undone, and a merge that was undone in part.
fn merges() -> Vec<(usize, UserChange)> {
    let name = |name: &str| {
        let paths = ["display_name".to_owned()];
        UserChange::Update(
            Update::from_mask(Some(&paths), name.to_owned(), BTreeMap::new()).unwrap(),
        )
    };

    let both = |n: usize, other: usize| {
        vec![
            (
                n,
                create(
                    "Cat",
                    vec![unverified(&format!("email:cat{n}@example.com"))],
                    &[("a", text("old")), ("b", text("x"))],
                ),
            ),
            (
                other,
                create(
                    "Dan",
                    vec![
                        unverified(&format!("email:d.an{other}@example.com")),
                        unverified(&format!("handle:dän{other}")),
                        unverified(&format!("handle:held{other}")),
                    ],
                    &[("a", text("new")), ("c", Value::Int(7))],
                ),
            ),
            (other, unlink(&format!("handle:held{other}"))),
            (n, UserChange::Merge(id(other), ConflictPolicy::SecondaryWins)),
        ]
    };

    let undone = vec![
        (5, unlink("email:d.an6@example.com")),
        (5, name("Changed")),
        (5, set(&[("a", text("changed"))])),
        (5, UserChange::Unmerge(id(6))),
    ];
    [both(3, 4), both(5, 6), undone].concat()
}

/// A user that was disabled and then deleted, and a purged user whose handle is held without an
/// owner.
fn deleted_and_purged() -> Vec<(usize, UserChange)> {
    vec![
        (7, create("", vec![unverified("email:eve@example.com")], &[])),
        (7, UserChange::Disable),
        (7, UserChange::Delete),
        (8, create("Fay", vec![unverified("handle:fäy")], &[])),
        (8, UserChange::Purge),
    ]
}

/// The mutations. The first three carry an idempotency key.
fn mutations() -> Vec<Mutation> {
    let holds = BTreeMap::from(Kind::ALL.map(|kind| (kind, HOLD_TIME)));
    let policies = Arc::new(Policies { holds, ..Policies::default() });
    let mutation = |(n, (tenant, kind)): (usize, (Tenant, MutationKind))| {
        let request = (n < 3).then_some(IdempotencyKey {
            key: format!("{tenant},Golden,{},joe", id(n)),
            request_hash: n as u64,
        });
        let policies = policies.clone();
        Mutation { policies, request, ..Mutation::new(tenant, time(n), kind) }
    };
    changes().into_iter().enumerate().map(mutation).collect()
}
