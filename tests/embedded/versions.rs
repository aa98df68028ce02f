//! Stores of older and newer programs: older stores are upgraded, and fields of newer programs are
//! kept.

use std::path::Path;
use std::time::Duration;

use polynym_directory::search::Derived;
use polynym_directory::{
    CurrentRules, LookUps, Mutation, Mutations, NewUser, Policies, PolicyUpdate, Search, Tenant,
    TenantChange, UserChange, View,
};
use polynym_embedded::{Embedded, IntegritySession, OpenError, Options, status, upgrade_to};
use polynym_identifier::{Identifier, Kind, RawIdentifier, Rules};
use redb::{ReadableDatabase, TableDefinition};
use xxhash_rust::xxh3::xxh3_64;

use super::golden::empty_store;
use super::{database, open};
use crate::server::{Server, polynym};
use crate::support::golden::{create_named, later_rules, named, records, untouched};
use crate::support::unknown_field::{FIELD, has_field, with_field};
use crate::support::users;

const USERS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("users");
const CLAIMS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("identities");
const TENANTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("tenants");

/// The schema version of the older store.
const OLDER: u64 = 4;

#[tokio::test(flavor = "multi_thread")]
async fn an_older_store_is_served_until_it_is_upgraded() {
    let folder = empty_store(OLDER);
    open(folder.path()).unwrap().mutate(users::by_first_rules(users::creation(0))).await.unwrap();
    let name = format!("embedded:{}", folder.path().display());
    let run = |command: &str| polynym(&["store", command, "--store", &name]).output().unwrap();
    assert!(run("init").status.success());

    let before = status(folder.path()).unwrap();
    assert_eq!((before.schema_version, before.rules_version, before.can_be_upgraded), (4, 1, true));
    assert!(String::from_utf8(run("status").stdout).unwrap().contains("polynym store upgrade"));
    let output = run("upgrade");
    assert!(output.status.success(), "{output:?}");

    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        printed.contains("upgrading schema version 4 to 10")
            && printed.ends_with("rules version 4 now\n"),
        "{printed}"
    );
    assert!(!status(folder.path()).unwrap().can_be_upgraded);

    let store = open(folder.path()).unwrap();
    assert!(users::look_up(&store, 0).await.unwrap());
    let refused = run("upgrade");
    assert!(String::from_utf8(refused.stderr).unwrap().contains("in use by another process"));
}

/// A store finds names as the older program did, until it is upgraded.
#[tokio::test]
async fn names_of_older_stores_are_found_by_words_until_upgraded() {
    let folder = empty_store(9);
    let store = open(folder.path()).unwrap();
    create_named(&store).await;
    named(&store, Derived::Words).await;
    drop(store);
    upgrade_to(folder.path(), Rules::FIRST, &|line| println!("{line}")).await.unwrap();
    untouched(&IntegritySession::open(folder.path()).unwrap()).await;
    named(&open(folder.path()).unwrap(), Derived::Forms).await;
}

/// Older stores do not list the users of a tenant: one whose tenant cannot be read is named to
/// nobody.
#[tokio::test]
async fn older_stores_name_no_users_of_unknown_tenants() {
    let folder = empty_store(OLDER);
    let store = open(folder.path()).unwrap();
    for n in 0..3 {
        store.mutate(users::by_first_rules(users::creation(n))).await.unwrap();
    }
    drop(store);
    let transaction = database(folder.path()).begin_write().unwrap();
    let mut table = transaction.open_table(USERS).unwrap();
    table.insert(users::id(1).as_bytes(), &b"short"[..]).unwrap();
    drop(table);
    transaction.commit().unwrap();

    let store = open(folder.path()).unwrap();
    for (tenant, count) in [("default", 2), ("other", 0)] {
        let tenant = Tenant::parse(tenant).unwrap();
        let scanned = store.scan(&tenant, None, 100).await.unwrap();
        assert_eq!((scanned.readable().count(), scanned.unreadable().count()), (count, 0));
    }
}

/// A killed upgrade leaves the store in the old version or in the new one.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_upgrade_is_completed_by_the_next() {
    for millis in [0, 5, 10, 15, 20, 30, 50] {
        let folder = empty_store(OLDER);
        open(folder.path())
            .unwrap()
            .mutate(users::by_first_rules(users::creation(0)))
            .await
            .unwrap();
        let name = format!("embedded:{}", folder.path().display());
        let mut killed = polynym(&["store", "upgrade", "--store", &name]).spawn().unwrap();
        tokio::time::sleep(Duration::from_millis(millis)).await;
        let _ = killed.kill();
        killed.wait().unwrap();
        assert!([4, 10].contains(&status(folder.path()).unwrap().schema_version));
        assert!(
            polynym(&["store", "upgrade", "--store", &name]).output().unwrap().status.success()
        );
        assert_eq!(status(folder.path()).unwrap().schema_version, 10);
        assert!(users::look_up(&open(folder.path()).unwrap(), 0).await.unwrap());
    }
}

/// Returns a stored user with a field of a newer program added to each of its messages.
fn with_added(record: &[u8]) -> Vec<u8> {
    let (record, _) = record.split_last_chunk::<8>().unwrap();
    let user = record.strip_prefix(b"\x0a").unwrap();
    let (length, user) = (usize::from(user[0] & 0x7f) | usize::from(user[1]) << 7, &user[2..]);
    assert_eq!(length, user.len(), "another length, or a record with a private part");
    let user = with_field(user);
    let head = [0x0a, user.len() as u8 | 0x80, (user.len() >> 7) as u8];
    let record = [&head[..], &user, b"\x12\x07", FIELD, FIELD].concat();
    let hash = xxh3_64(&record).to_le_bytes();
    [record, hash.to_vec()].concat()
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
    store.mutate(users::by_first_rules(Mutation { policies, ..unlink })).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_a_newer_program_survive() {
    let folder = empty_store(5);
    let store = open(folder.path()).unwrap();
    store.mutate(users::by_first_rules(users::creation(1))).await.unwrap();
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
    users::by_first_rules(users::mutation(users::id(n), UserChange::Create(new_user)))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_with_colliding_identities_changes_nothing() {
    let folder = empty_store(OLDER);
    let store = open(folder.path()).unwrap();
    store.mutate(creation(1, "ada.l@example.com")).await.unwrap();
    store.mutate(creation(2, "adal@example.com")).await.unwrap();
    let before = records(&store).await;
    drop(store);
    let upgrade =
        async || upgrade_to(folder.path(), later_rules(), &|line| println!("{line}")).await;
    let error = upgrade().await.unwrap_err();
    assert!(matches!(error, OpenError::Unmovable { count: 1, .. }), "{error}");

    let store = open(folder.path()).unwrap();
    assert_eq!(records(&store).await, before);
    let second = Identifier::parse(RawIdentifier::Email("adal@example.com")).unwrap();
    let unlink = users::mutation(users::id(2), UserChange::Unlink(second));
    store.mutate(users::by_first_rules(unlink)).await.unwrap();
    drop(store);
    upgrade().await.unwrap();
    assert_eq!(versions_under_later_rules(folder.path()).await, [later_rules().version(); 2]);
}

/// Returns the lowest rules version of the identities of a store, and the version of a server that
/// opens it.
async fn versions_under_later_rules(folder: &Path) -> [u32; 2] {
    let later = later_rules().version();
    let store = Embedded::open_supporting(folder, Options::default(), later).unwrap();
    let records = records(&store).await;
    let found = records
        .iter()
        .flat_map(|record| &record.user.identities)
        .map(|identity| identity.rules_version);
    [found.min().unwrap(), store.rules(Default::default()).await.unwrap().version]
}

/// A server applies the first rules to a store that has them, until the store is upgraded.
#[tokio::test(flavor = "multi_thread")]
async fn profiles_and_issuers_need_later_rules() {
    let folder = empty_store(5);
    let name = format!("embedded:{}", folder.path().display());
    let (with, without) =
        ("url:https://www.linkedin.com/in/ada", "url:https://linkedin.com/in/Ada");
    let issuer = "social:https%3A%2F%2Faccounts.google.com/42";
    let start = || Server::start(&["--store", &name]);
    let create =
        |server: &Server, identity| server.run(&["user", "create", "--identity", identity]);
    let normalized = |server: &Server| {
        let output = server.run(&["identity", "normalize", "--json", without]);
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (
            answer["identifier"]["url"].as_str().unwrap().to_owned(),
            answer["rulesVersion"].as_u64().unwrap(),
        )
    };
    let upgrade = || polynym(&["store", "upgrade", "--store", &name]).output().unwrap();
    {
        let server = start();
        for identity in [with, without] {
            assert!(
                create(&server, identity).status.success(),
                "{identity} is not free by the first rules"
            );
        }
        assert!(!create(&server, issuer).status.success(), "the first rules have no issuers");
        assert_eq!(normalized(&server), ("https://linkedin.com/in/Ada".to_owned(), 1));
    }
    let refused = upgrade();
    assert!(!refused.status.success(), "two users would get one identity");

    {
        let server = start();
        assert!(server.run(&["identity", "unlink", without, without]).status.success());
    }
    assert!(upgrade().status.success());

    let server = start();
    for identity in [with, without] {
        assert!(server.run(&["resolve", identity]).status.success(), "{identity} is not found");
    }
    assert!(!create(&server, without).status.success(), "the identity is taken");
    assert!(create(&server, issuer).status.success());
    assert_eq!(normalized(&server), ("https://www.linkedin.com/in/ada".to_owned(), 4));
}
