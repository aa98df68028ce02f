//! Servers of two versions on one store, before and after its upgrade; and fields of newer
//! programs, which are kept.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::TryStreamExt;
use locality_uuid::LocalityId;
use mongodb::Database;
use mongodb::bson::{Binary, Bson, Document, doc, spec::BinarySubtype};
use polynym_directory::search::Derived;
use polynym_directory::{
    Error, Mutation, MutationKind, Mutations, NewIdentity, PolicyUpdate, Reads, Search,
    TenantChange, UserChange,
};
use polynym_identifier::{Identifier, RawIdentifier, Rules};
use polynym_mongodb::{
    InitOptions, IntegritySession, Mongo, OpenError, Options, Supported, init, upgrade_to,
};
use tokio::sync::Notify;

use super::golden::{dump, empty_store, golden_store};
use super::servers::{self, Databases, Layout, ReplicaSet};
use crate::server::{Server, polynym};
use crate::support::golden::{create_named, fill, named, untouched};
use crate::support::unknown_field::{has_field, with_field};
use crate::support::users;

/// The version of the older program.
const OLDER: i64 = 2;

async fn older(uri: &str) -> Result<Mongo, OpenError> {
    Mongo::open_supporting(
        uri,
        Options::default(),
        Supported { schema: OLDER, ..Supported::PRESENT },
    )
    .await
}

async fn newer(uri: &str) -> Mongo {
    Mongo::open(uri, Options::default()).await.unwrap()
}

async fn upgraded(uri: &str) {
    upgrade_to(uri, Rules::FIRST, &|line| println!("{line}")).await.unwrap();
}

fn creation(n: usize) -> Mutation {
    users::by_first_rules(users::creation(n))
}

fn uuid(id: LocalityId) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: id.as_bytes().to_vec() })
}

fn identifier(name: &str) -> Identifier {
    Identifier::parse(RawIdentifier::from_text(name).unwrap()).unwrap()
}

/// The epochs of all users, if they have any.
async fn epochs(database: &Database) -> Vec<Option<i32>> {
    let found = database
        .collection::<Document>("users")
        .find(doc! {})
        .sort(doc! { "_id": 1 })
        .await
        .unwrap();
    let found: Vec<Document> = found.try_collect().await.unwrap();
    found.iter().map(|user| user.get_i32("e").ok()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_versions_work_together_until_the_upgrade() {
    let (database, uri) = empty_store(servers::one_member().await, OLDER, "versions_two").await;
    let (old, new) = (older(&uri).await.unwrap(), newer(&uri).await);
    old.mutate(creation(0)).await.unwrap();
    new.mutate(creation(1)).await.unwrap();
    for store in [&old, &new] {
        assert!(users::look_up(store, 0).await.unwrap() && users::look_up(store, 1).await.unwrap());
    }
    assert_eq!(epochs(&database).await, [None, None]);

    upgraded(&uri).await;
    let error = old.mutate(creation(2)).await.expect_err("an older program writes");
    assert!(matches!(&error, Error::Outdated(why) if why.contains("schema version ")), "{error}");
    assert!(matches!(old.check().await, Err(Error::Outdated(_))));
    assert!(users::look_up(&old, 1).await.unwrap());
    new.mutate(creation(3)).await.unwrap();
    new.check().await.unwrap();
    // The upgrade has rewritten the documents last with the third epoch.
    assert_eq!(epochs(&database).await, [Some(3), Some(3), Some(6)]);
    let error = older(&uri).await.err().expect("an older program opened it");
    assert!(matches!(error, OpenError::Version { found: 14, .. }), "{error}");
}

/// Makes the heartbeats of servers on a set miss the upgrade.
async fn block_heartbeats(set: &ReplicaSet) {
    let data = doc! { "failCommands": ["find"], "errorCode": 50, "appName": "polynym heartbeat" };
    let failing = doc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": data };
    set.members[0].admin(failing).await.unwrap();
}

/// A mutation of each kind of document: users, claims alone, purged users, and tenants.
fn mutations() -> [Mutation; 5] {
    let link = NewIdentity::new(identifier("handle:linked"), "linked".to_owned());
    [
        creation(200),
        users::mutation(users::id(1), UserChange::Link(link)),
        users::mutation(users::id(7), UserChange::Purge),
        users::mutation_of(MutationKind::ReleaseHold(identifier("handle:fäy"))),
        users::tenant_mutation(TenantChange::Set(PolicyUpdate {
            keep_last: Some(true),
            ..Default::default()
        })),
    ]
    .map(users::by_first_rules)
}

/// Servers that were frozen during the upgrade, or cannot read the versions, learn of it from their
/// writes.
#[tokio::test(flavor = "multi_thread")]
async fn an_outdated_server_learns_of_the_upgrade_on_write() {
    let set = ReplicaSet::start(Layout::default()).await;
    let (database, uri) = empty_store(&set, OLDER, "versions_deaf").await;
    fill(&newer(&uri).await).await;
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for _ in mutations() {
        old.push(older(&uri).await.unwrap());
        new.push(newer(&uri).await);
    }
    block_heartbeats(&set).await;
    upgraded(&uri).await;
    let before = dump(&database).await;
    for (store, mutation) in old.iter().zip(mutations()) {
        let error = store.mutate(mutation.clone()).await.expect_err("an older program writes");
        assert!(matches!(error, Error::Outdated(_)), "{mutation:?}: {error:?}");
    }
    assert!(dump(&database).await == before, "an older program changed it");
    for (store, mutation) in new.iter().zip(mutations()) {
        store
            .mutate(mutation.clone())
            .await
            .unwrap_or_else(|error| panic!("{mutation:?}: {error:?}"));
    }
    assert!(dump(&database).await.contains("\"e\": 1"));
}

/// A program without epochs.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_of_an_older_program_fails() {
    let set = servers::one_member().await;
    let (database, uri) = empty_store(set, OLDER, "versions_raw").await;
    newer(&uri).await.mutate(creation(1)).await.unwrap();
    let people = database.collection::<Document>("users");
    let filter = doc! { "_id": uuid(users::id(1)) };
    let found = people.find_one(filter.clone()).await.unwrap().unwrap();
    let mut session = set.client().await.start_session().await.unwrap();
    session.start_transaction().await.unwrap();
    // Its snapshot is older than the upgrade, which would wait for the transaction if it had read
    // users.
    let requests = database.collection::<Document>("requests");
    requests.find_one(doc! {}).session(&mut session).await.unwrap();
    upgraded(&uri).await;
    let changed =
        Document::from_iter(found.clone().into_iter().chain([("r".to_owned(), 7_i64.into())]));
    let written = people.replace_one(filter.clone(), changed.clone()).session(&mut session).await;
    println!("{}", written.expect_err("it is written"));
    let _ = session.abort_transaction().await;
    people.replace_one(filter.clone(), changed).await.expect_err("it is written later");
    let found = people.find_one(filter).await.unwrap().unwrap();
    assert_ne!(found.get_i64("r").unwrap(), 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_frozen_during_the_upgrade_adopts_the_new_version() {
    let set = servers::one_member().await;
    let (database, uri) = empty_store(set, OLDER, "versions_frozen").await;
    let stores = uri.clone();
    let server =
        tokio::task::spawn_blocking(move || Server::start(&["--store", &stores])).await.unwrap();
    let created = server.run(&["user", "create", "--identity", "email:joe@example.com"]);
    assert!(created.status.success(), "{created:?}");
    server.signal("STOP");
    let output = polynym(&["store", "upgrade", "--store", &uri]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .ends_with("schema version 14 and rules version 4 now\n")
    );
    server.signal("CONT");
    let created = server.run(&["user", "create", "--identity", "email:eve@example.com"]);
    assert!(created.status.success(), "{created:?}");
    let mut found = epochs(&database).await;
    found.sort_unstable();
    // The first six epochs are about the schema, the next about moved identities, the last about
    // the rules.
    assert_eq!(found, [Some(7), Some(8)]);
}

/// Stops an upgrade after `lines` messages. Returns false if it had finished.
async fn interrupted(uri: &str, lines: usize) -> bool {
    let (said, enough) = (AtomicUsize::new(0), Notify::new());
    let count = |_: &str| {
        if said.fetch_add(1, Ordering::Relaxed) + 1 == lines {
            enough.notify_one();
        }
    };
    tokio::select! {
        biased;
        () = enough.notified() => true,
        outcome = upgrade_to(uri, Rules::FIRST, &count) => {
            outcome.unwrap();
            false
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_upgrade_is_finished_by_the_next() {
    upgrades_are_interrupted_every(37).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes many minutes"]
async fn long_an_interrupted_upgrade_is_finished_by_the_next() {
    upgrades_are_interrupted_every(1).await;
}

/// Interrupts upgrades after each such number of sentences.
async fn upgrades_are_interrupted_every(step: usize) {
    let mut lines = 1;
    loop {
        let name = format!("versions_stopped{lines}");
        let (database, uri) = empty_store(servers::one_member().await, OLDER, &name).await;
        let new = newer(&uri).await;
        if !interrupted(&uri, lines).await {
            break;
        }
        new.mutate(creation(0)).await.unwrap();
        newer(&uri).await.check().await.unwrap();
        upgraded(&uri).await;
        new.mutate(creation(1)).await.unwrap();
        assert_eq!(epochs(&database).await.last(), Some(&Some(6)), "after {lines} sentences");
        newer(&uri).await.check().await.unwrap();
        lines += step;
    }
    assert!(lines > 10, "{lines}");
}

/// A store finds names as the older program did, until an upgrade is done, interrupted or not.
#[tokio::test(flavor = "multi_thread")]
async fn names_of_older_stores_are_found_by_words_until_upgraded() {
    let (_, uri) = empty_store(servers::one_member().await, 12, "versions_names").await;
    let store = newer(&uri).await;
    create_named(&store).await;
    named(&store, Derived::Words).await;
    // The first sentences are those of a store that users write with forms, which some lack.
    let mut lines = 1;
    while interrupted(&uri, lines).await {
        let store = newer(&uri).await;
        named(&store, store.derived().unwrap()).await;
        lines += 1;
    }
    upgraded(&uri).await;
    let audit = IntegritySession::open(&uri).await.unwrap();
    untouched(&audit).await;
    audit.close().await;
    named(&newer(&uri).await, Derived::Forms).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_store_is_completed_in_its_version() {
    let (database, uri) = golden_store(OLDER, "versions_init").await;
    database.run_command(doc! { "collMod": "users", "validator": {} }).await.unwrap();
    let said = std::sync::Mutex::new(Vec::new());
    init(&uri, &InitOptions::default(), &|line| said.lock().unwrap().push(line.to_owned()))
        .await
        .unwrap();
    let said = said.into_inner().unwrap().join("\n");
    assert!(
        said.contains("schema version 2 before") && said.contains("polynym store upgrade"),
        "{said}"
    );
    let whole = golden_store(OLDER, "versions_whole").await.0;
    assert!(dump(&database).await == dump(&whole).await, "the stores differ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_validator_of_a_newer_program_is_accepted() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    factory.mongo().await.unwrap().close().await;
    let database = servers::one_member().await.client().await.database(factory.name().await);
    let listed = database
        .run_command(doc! { "listCollections": 1, "filter": { "name": "users" } })
        .await
        .unwrap();
    let collection = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap()[0]
        .as_document()
        .unwrap();
    let mut validator =
        collection.get_document("options").unwrap().get_document("validator").unwrap().clone();
    let schema = validator.get_document_mut("$jsonSchema").unwrap();
    schema.get_document_mut("properties").unwrap().insert("z", doc! { "bsonType": "string" });
    let set = async |validator: &Document| {
        database
            .run_command(doc! { "collMod": "users", "validator": validator.clone() })
            .await
            .unwrap();
    };
    set(&validator).await;
    factory.mongo().await.unwrap().close().await;
    // A validator that refuses unknown fields is not accepted.
    validator.get_document_mut("$jsonSchema").unwrap().insert("additionalProperties", false);
    set(&validator).await;
    assert!(matches!(factory.mongo().await.err(), Some(OpenError::Incomplete { .. })));
    servers::make(factory.uri().await).await;
    factory.mongo().await.unwrap().close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_a_newer_program_survive() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let store = factory.mongo().await.unwrap();
    store.mutate(users::creation(1)).await.unwrap();
    let policies =
        |keep| TenantChange::Set(PolicyUpdate { keep_last: Some(keep), ..Default::default() });
    store.mutate(users::tenant_mutation(policies(false))).await.unwrap();
    let database = servers::one_member().await.client().await.database(factory.name().await);
    let [email, _] = users::keys(1);
    let documents = [
        ("users", uuid(users::id(1)), "w"),
        ("tenants", "default".into(), "p"),
        ("identities", email.as_str().into(), ""),
    ];
    let find = async |name: &str, id: &Bson| {
        database
            .collection::<Document>(name)
            .find_one(doc! { "_id": id.clone() })
            .await
            .unwrap()
            .unwrap()
    };
    for (name, id, field) in &documents {
        let mut set = doc! { "zz": "kept" };
        if let Ok(message) = find(name, id).await.get_binary_generic(field) {
            set.insert(
                *field,
                Binary { subtype: BinarySubtype::Generic, bytes: with_field(message) },
            );
        }
        let collection = database.collection::<Document>(name);
        let added =
            collection.update_one(doc! { "_id": id.clone() }, doc! { "$set": set }).await.unwrap();
        assert_eq!(added.modified_count, 1);
    }
    store.mutate(users::mutation(users::id(1), UserChange::Disable)).await.unwrap();
    store.mutate(users::tenant_mutation(policies(true))).await.unwrap();
    // Unlinking an identity holds it, which changes its claim.
    let unlink = users::mutation(users::id(1), UserChange::Unlink(users::email(1)));
    let holds =
        [(polynym_identifier::Kind::Email, std::time::Duration::from_secs(100_000_000))].into();
    let policies = polynym_directory::Policies { holds, ..Default::default() }.into();
    store.mutate(Mutation { policies, ..unlink }).await.unwrap();
    for (name, id, field) in &documents {
        let found = find(name, id).await;
        assert!(found.get_str("zz").is_ok_and(|kept| kept == "kept"), "{found}");
        assert!(field.is_empty() || has_field(found.get_binary_generic(field).unwrap()), "{found}");
    }
    assert!(find("identities", &documents[2].1).await.contains_key("h"), "the claim was changed");
}
