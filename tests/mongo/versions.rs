//! Servers of two versions on one store, before and after its upgrade; and fields of newer
//! programs, which are kept.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::TryStreamExt;
use locality_uuid::LocalityId;
use mongodb::Database;
use mongodb::bson::{Binary, Bson, Document, doc, spec::BinarySubtype};
use polynym_directory::{
    Error, Mutation, MutationKind, Mutations, NewIdentity, Policies, PolicyUpdate, Reads,
    TenantChange, UserChange,
};
use polynym_identifier::{Identifier, Kind, RawIdentifier, Rules};
use polynym_mongodb::{InitOptions, Mongo, OpenError, Options, Supported, init, upgrade_to};
use tokio::sync::Notify;

use super::golden::{dump, golden_store, new_store};
use super::servers::{self, Databases, Layout, ReplicaSet};
use crate::support::unknown_field::{has_field, with_field};
use crate::support::users;

/// The made-up next version of the schema.
pub const NEXT: Supported =
    Supported { schema: Supported::PRESENT.schema + 1, ..Supported::PRESENT };

async fn older(uri: &str) -> Result<Mongo, OpenError> {
    Mongo::open(uri, Options::default()).await
}

async fn newer(uri: &str) -> Mongo {
    Mongo::open_supporting(uri, Options::default(), NEXT).await.unwrap()
}

async fn upgraded(uri: &str) {
    upgrade_to(uri, NEXT.schema, Rules::PRESENT, &|line| println!("{line}")).await.unwrap();
}

fn uuid(id: LocalityId) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: id.as_bytes().to_vec() })
}

fn identifier(name: &str) -> Identifier {
    Identifier::parse(RawIdentifier::from_text(name).unwrap()).unwrap()
}

/// The epochs of all users.
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
    let (database, uri) = new_store(servers::one_member().await, "versions_two").await;
    let (old, new) = (older(&uri).await.unwrap(), newer(&uri).await);
    old.mutate(users::creation(0)).await.unwrap();
    new.mutate(users::creation(1)).await.unwrap();
    for store in [&old, &new] {
        assert!(users::look_up(store, 0).await.unwrap() && users::look_up(store, 1).await.unwrap());
    }
    assert_eq!(epochs(&database).await, [Some(1), Some(1)]);

    upgraded(&uri).await;
    let error = old.mutate(users::creation(2)).await.expect_err("an older program writes");
    assert!(matches!(&error, Error::Outdated(why) if why.contains("schema version ")), "{error}");
    assert!(matches!(old.check().await, Err(Error::Outdated(_))));
    assert!(users::look_up(&old, 1).await.unwrap());
    new.mutate(users::creation(3)).await.unwrap();
    new.check().await.unwrap();
    assert_eq!(epochs(&database).await, [Some(1), Some(1), Some(2)]);
    let error = older(&uri).await.err().expect("an older program opened it");
    assert!(matches!(error, OpenError::Version { found, .. } if found == NEXT.schema), "{error}");
    assert!(error.to_string().contains("use a newer program"), "{error}");
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
        users::creation(200),
        users::mutation(users::id(1), UserChange::Link(link)),
        users::mutation(users::id(7), UserChange::Purge),
        users::mutation_of(MutationKind::ReleaseHold(identifier("handle:user1"))),
        users::tenant_mutation(TenantChange::Set(PolicyUpdate {
            keep_last: Some(true),
            ..Default::default()
        })),
    ]
}

/// Servers that were frozen during the upgrade, or cannot read the versions, learn of it from their
/// writes.
#[tokio::test(flavor = "multi_thread")]
async fn an_outdated_server_learns_of_the_upgrade_on_write() {
    let set = ReplicaSet::start(Layout::default()).await;
    let (database, uri) = new_store(&set, "versions_deaf").await;
    let store = newer(&uri).await;
    for n in [1, 7] {
        store.mutate(users::creation(n)).await.unwrap();
    }
    let policies = Policies {
        holds: [(Kind::Handle, Duration::from_secs(100_000_000))].into(),
        ..Policies::default()
    };
    let given_up = users::mutation(users::id(1), UserChange::Unlink(identifier("handle:user1")));
    store.mutate(Mutation { policies: policies.into(), ..given_up }).await.unwrap();
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
    assert!(dump(&database).await.contains("\"e\": 2"));
}

/// A program that does not know of the new epoch.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_of_an_older_program_fails() {
    let set = servers::one_member().await;
    let (database, uri) = new_store(set, "versions_raw").await;
    newer(&uri).await.mutate(users::creation(1)).await.unwrap();
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
        outcome = upgrade_to(uri, NEXT.schema, Rules::PRESENT, &count) => {
            outcome.unwrap();
            false
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_upgrade_is_finished_by_the_next() {
    upgrades_are_interrupted_every(5).await;
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
        let (database, uri) = new_store(servers::one_member().await, &name).await;
        let new = newer(&uri).await;
        if !interrupted(&uri, lines).await {
            break;
        }
        new.mutate(users::creation(0)).await.unwrap();
        newer(&uri).await.check().await.unwrap();
        upgraded(&uri).await;
        new.mutate(users::creation(1)).await.unwrap();
        assert_eq!(epochs(&database).await.last(), Some(&Some(2)), "after {lines} sentences");
        newer(&uri).await.check().await.unwrap();
        lines += step;
    }
    assert!(lines > 10, "{lines}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_is_completed_in_its_version() {
    let (database, uri) = golden_store("versions_init").await;
    database.run_command(doc! { "collMod": "users", "validator": {} }).await.unwrap();
    let said = std::sync::Mutex::new(Vec::new());
    init(&uri, &InitOptions::default(), &|line| said.lock().unwrap().push(line.to_owned()))
        .await
        .unwrap();
    let said = said.into_inner().unwrap().join("\n");
    assert!(said.contains("schema version 16 before"), "{said}");
    let whole = golden_store("versions_whole").await.0;
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
    let holds = [(Kind::Email, Duration::from_secs(100_000_000))].into();
    let policies = Policies { holds, ..Default::default() }.into();
    store.mutate(Mutation { policies, ..unlink }).await.unwrap();
    for (name, id, field) in &documents {
        let found = find(name, id).await;
        assert!(found.get_str("zz").is_ok_and(|kept| kept == "kept"), "{found}");
        assert!(field.is_empty() || has_field(found.get_binary_generic(field).unwrap()), "{found}");
    }
    assert!(find("identities", &documents[2].1).await.contains_key("h"), "the claim was changed");
}
