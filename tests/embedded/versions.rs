//! Stores of older and newer programs: older ones are refused with advice, and fields of newer
//! programs are kept.

use std::path::Path;
use std::time::Duration;

use polynym_directory::{
    CurrentRules, LookUps, Mutation, Mutations, NewIdentity, NewUser, Policies, PolicyUpdate,
    TenantChange, UserChange, View, model::unknown::Field, model::unknown::fields,
};
use polynym_embedded::{Embedded, OpenError, Options, Supported, status, upgrade_to};
use polynym_identifier::{Identifier, Kind, RULES_VERSION, RawIdentifier};
use redb::{ReadableDatabase, TableDefinition};
use xxhash_rust::xxh3::xxh3_64;

use super::golden::META;
use super::{database, open};
use crate::server::{Server, polynym};
use crate::support::golden::{later_rules, records};
use crate::support::unknown_field::{FIELD, has_field, with_field};
use crate::support::users;

const USERS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("users");
const CLAIMS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("identities");
const TENANTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("tenants");

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_an_older_schema_is_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path()).unwrap().mutate(users::creation(0)).await.unwrap();
    let name = format!("embedded:{}", folder.path().display());
    let run = |command: &str| polynym(&["store", command, "--store", &name]).output().unwrap();
    let output = run("upgrade");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.ends_with("schema version 12 and rules version 4 now\n"), "{printed}");
    assert!(!status(folder.path()).unwrap().can_be_upgraded);

    for (field, version, found) in [
        ("rules", 3, "has schema version 12 and rules version 3"),
        ("schema", 10, "has schema version 10 and rules version 3"),
    ] {
        let transaction = database(folder.path()).begin_write().unwrap();
        transaction.open_table(META).unwrap().insert(field, version).unwrap();
        transaction.commit().unwrap();
        for command in ["init", "status", "upgrade", "verify"] {
            let output = run(command);
            let error = String::from_utf8(output.stderr).unwrap();
            assert!(!output.status.success(), "{command}");
            let advice = "export it with the program that wrote it, and import that with this one";
            assert!(error.contains(found) && error.contains(advice), "{error}");
        }
    }
}

/// Returns a stored user with a field of a newer program added to each of its messages.
fn with_added(record: &[u8]) -> Vec<u8> {
    let (record, _) = record.split_last_chunk::<8>().unwrap();
    let part = |field: Field<'_>| match field.tag {
        1 | 2 => message(field.tag as u8, &with_field(field.bytes)),
        _ => field.whole.to_vec(),
    };
    assert!(fields(record).any(|field| field.tag == 2), "a record without a private part");
    let record: Vec<u8> = fields(record).flat_map(part).chain(FIELD.to_vec()).collect();
    let hash = xxh3_64(&record).to_le_bytes();
    [record, hash.to_vec()].concat()
}

/// A field with a message of at most 16 KiB.
fn message(tag: u8, message: &[u8]) -> Vec<u8> {
    let length = message.len();
    let head = [tag << 3 | 2, length as u8 | 0x80, (length >> 7) as u8];
    [&head, message].concat()
}

fn stored(folder: &Path) -> [Vec<u8>; 3] {
    let transaction = database(folder).begin_read().unwrap();
    let user = transaction
        .open_table(USERS)
        .unwrap()
        .get(users::id(1).as_bytes())
        .unwrap()
        .unwrap()
        .value()
        .to_vec();
    let [email, _] = users::keys(1);
    let claim =
        transaction.open_table(CLAIMS).unwrap().get(email.as_str().as_bytes()).unwrap().unwrap();
    let tenant = transaction.open_table(TENANTS).unwrap().get("default").unwrap().unwrap();
    [user, claim.value().to_vec(), tenant.value().to_vec()]
}

fn add_fields(folder: &Path) {
    let [user, claim, tenant] = stored(folder);
    let transaction = database(folder).begin_write().unwrap();
    {
        let mut table = transaction.open_table(USERS).unwrap();
        table.insert(users::id(1).as_bytes(), with_added(&user).as_slice()).unwrap();
        // Added fields of a claim start after 27 bytes.
        let claim = [&claim[..], &[0; 9], FIELD].concat();
        let [email, _] = users::keys(1);
        transaction
            .open_table(CLAIMS)
            .unwrap()
            .insert(email.as_str().as_bytes(), claim.as_slice())
            .unwrap();
        transaction
            .open_table(TENANTS)
            .unwrap()
            .insert("default", with_field(&tenant).as_slice())
            .unwrap();
    }
    transaction.commit().unwrap();
}

async fn mutate_all(store: &Embedded) {
    let found = store
        .resolve(&users::keys(1), Default::default(), View::Full, Duration::ZERO)
        .await
        .unwrap()
        .found;
    assert!(found.into_iter().all(|found| found.unwrap().is_some()));
    store.mutate(users::mutation(users::id(1), UserChange::Disable)).await.unwrap();
    let change = TenantChange::Set(PolicyUpdate { keep_last: Some(true), ..Default::default() });
    store.mutate(users::tenant_mutation(change)).await.unwrap();

    // An unlinked identity is held, which changes its claim.
    let holds = [(Kind::Email, Duration::from_secs(100_000_000))].into();
    let policies = Policies { holds, ..Default::default() }.into();
    let unlink = users::mutation(users::id(1), UserChange::Unlink(users::email(1)));
    store.mutate(Mutation { policies, ..unlink }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_a_newer_program_survive() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    store.mutate(users::creation(1)).await.unwrap();
    let change = TenantChange::Set(PolicyUpdate::default());
    store.mutate(users::tenant_mutation(change)).await.unwrap();
    drop(store);
    add_fields(folder.path());
    let store = open(folder.path()).unwrap();
    mutate_all(&store).await;
    drop(store);
    let [user, claim, tenant] = stored(folder.path());
    assert_eq!(
        user.windows(FIELD.len()).filter(|part| *part == FIELD).count(),
        3,
        "{}",
        user.escape_ascii()
    );
    assert!(
        claim.len() == 27 + FIELD.len() && claim[18] != 0 && claim.ends_with(FIELD),
        "{}",
        claim.escape_ascii()
    );
    assert!(has_field(&tenant));
}

fn creation(n: usize, email: &str) -> Mutation {
    let identifier = Identifier::parse(RawIdentifier::Email(email)).unwrap();
    let identities = vec![users::identity(identifier)];
    let new_user = NewUser { identities, ..NewUser::default() };
    users::mutation(users::id(n), UserChange::Create(new_user))
}

/// The versions of a program with the later rules.
const LATER: Supported = Supported { rules: RULES_VERSION + 1, ..Supported::PRESENT };

/// Moves all identities to the later rules.
async fn moved(folder: &Path) -> Result<(), OpenError> {
    upgrade_to(folder, LATER.schema, later_rules(), &|line| println!("{line}")).await
}

/// A run that stops before the versions are changed, and one after some identities have moved.
#[tokio::test]
async fn a_half_moved_store_is_served_and_completed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    store.mutate(creation(1, "ada.l@example.com")).await.unwrap();
    drop(store);
    for point in ["can be moved", "were moved"] {
        let path = folder.path().to_owned();
        let stop = move |line: &str| assert!(!line.contains(point), "stopped on purpose");
        let run = async move { upgrade_to(&path, LATER.schema, later_rules(), &stop).await };
        assert!(tokio::spawn(run).await.unwrap_err().is_panic(), "{point}");
        let store = Embedded::open_supporting(folder.path(), Options::default(), LATER).unwrap();
        assert_eq!(records(&store).await.len(), 1);
    }
    moved(folder.path()).await.unwrap();
    assert_eq!(versions_under_later_rules(folder.path()).await, [LATER.rules; 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_with_colliding_identities_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    store.mutate(creation(1, "ada.l@example.com")).await.unwrap();
    store.mutate(creation(2, "adal@example.com")).await.unwrap();
    let before = records(&store).await;
    drop(store);
    let error = moved(folder.path()).await.unwrap_err();
    assert!(matches!(error, OpenError::Unmovable { count: 1, .. }), "{error}");

    let store = open(folder.path()).unwrap();
    assert_eq!(records(&store).await, before);
    let second = Identifier::parse(RawIdentifier::Email("adal@example.com")).unwrap();
    let unlink = users::mutation(users::id(2), UserChange::Unlink(second));
    store.mutate(unlink).await.unwrap();
    drop(store);
    moved(folder.path()).await.unwrap();
    assert_eq!(versions_under_later_rules(folder.path()).await, [LATER.rules; 2]);
}

/// Returns the lowest rules version of the identities of a store, and the version of a server that
/// opens it.
async fn versions_under_later_rules(folder: &Path) -> [u32; 2] {
    let store = Embedded::open_supporting(folder, Options::default(), LATER).unwrap();
    let records = records(&store).await;
    let found = records
        .iter()
        .flat_map(|record| &record.user.identities)
        .map(|identity| identity.rules_version);
    [found.min().unwrap(), store.rules(Default::default()).await.unwrap().version]
}

/// Two identities of which the present rules make one: the report names both, and what remains.
#[tokio::test(flavor = "multi_thread")]
async fn a_renormalization_reports_a_collision() {
    let folder = tempfile::tempdir().unwrap();
    let forms = ["https://x.com/ann", "https://x.com/@ann"];
    let store = open(folder.path()).unwrap();
    for (n, form) in forms.into_iter().enumerate() {
        let identifier = Identifier::from_canonical(Kind::Url, form.to_owned());
        let new = NewIdentity { rules_version: RULES_VERSION - 1, ..users::identity(identifier) };
        let new_user = NewUser { identities: vec![new], ..NewUser::default() };
        let creation = users::mutation(users::id(n), UserChange::Create(new_user));
        store.mutate(creation).await.unwrap();
    }
    drop(store);
    let server = Server::start(&["--store", &format!("embedded:{}", folder.path().display())]);
    let output = server.run(&["renormalize", "--dry-run", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let problem = &shown["problems"][0];
    let mut users = [("userId", "identifier"), ("otherUserId", "otherIdentifier")]
        .map(|(user, identifier)| (problem[user].as_str(), problem[identifier]["url"].as_str()));
    users.sort_unstable();
    let ids = [0, 1].map(|n| users::id(n).to_string());
    let expected = [(Some(&*ids[0]), Some(forms[0])), (Some(&*ids[1]), Some(forms[1]))];
    assert_eq!(users, expected, "{shown}");
    assert_eq!(
        (&problem["newIdentifier"]["url"], &shown["failed"]),
        (&forms[0].into(), &"1".into())
    );
}
