//! A golden store of the second rules: `store upgrade` moves it to the present ones, in every case,
//! from any point of an interrupted run, and while servers of both programs run.

use std::sync::{Arc, Mutex};

use mongodb::Database;
use mongodb::bson::{Document, doc};
use polynym_directory::Backend;
use polynym_identifier::Rules;
use polynym_mongodb::{
    InitOptions, IntegritySession, Mongo, OpenError, Options, Supported, init, upgrade,
};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::golden::{dump, outside_inboxes, restore};
use super::servers;
use super::support::golden::{self, untouched};
use crate::support::second_rules::{
    assert_collision, assert_moved, assert_second, collide, fill, resolve_collision,
};

const STORE: &str = "mongodb-rules-2.txt";

/// The database `name` with a new store of the second rules and schema version 8, and its URI.
async fn new_store(name: &str) -> (Database, String) {
    let set = servers::one_member().await;
    let (database, uri) = (set.client().await.database(name), set.uri(name, ""));
    init(&uri, &InitOptions::default(), &|line| println!("{line}")).await.unwrap();
    // The schema of that time has the same collections, but claims without an epoch.
    let list = doc! { "listCollections": 1, "filter": { "name": "identities" } };
    let listed = database.run_command(list).await.unwrap();
    let first = &listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap()[0];
    let options = first.as_document().unwrap().get_document("options").unwrap();
    let mut validator = options.get_document("validator").unwrap().clone();
    let schema = validator.get_document_mut("$jsonSchema").unwrap();
    schema.get_document_mut("properties").unwrap().remove("e").unwrap();
    let change = doc! { "collMod": "identities", "validator": validator };
    database.run_command(change).await.unwrap();
    let versions = doc! { "n": i64::from(Rules::SECOND.version()), "v": 8_i64 };
    let change = doc! { "$set": versions };
    database.collection::<Document>("meta").update_one(doc! {}, change).await.unwrap();
    (database, uri)
}

/// The database `name` with the golden store, and its URI.
async fn golden_store(name: &str) -> (Database, String) {
    let set = servers::one_member().await;
    let database = set.client().await.database(name);
    let text = std::fs::read_to_string(golden::file(STORE)).unwrap();
    restore(&database, text.lines()).await;
    (database, set.uri(name, ""))
}

async fn open(uri: &str) -> Arc<Mongo> {
    Arc::new(Mongo::open(uri, Options::default()).await.unwrap())
}

async fn backend(uri: &str) -> Backend {
    open(uri).await.backend()
}

async fn upgraded(uri: &str) -> Result<(), OpenError> {
    upgrade(uri, &|line| println!("{line}")).await
}

async fn assert_clean(uri: &str) {
    let audit = IntegritySession::open(uri).await.unwrap();
    untouched(&audit).await;
    audit.close().await;
}

async fn assert_upgraded(uri: &str) {
    assert_clean(uri).await;
    assert_moved(backend(uri).await).await;
    assert_clean(uri).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_the_second_rules_is_moved_in_every_case() {
    let (new, uri) = new_store("second_rules_new").await;
    fill(&*open(&uri).await).await;
    let text = std::fs::read_to_string(golden::file(STORE)).unwrap();
    assert_eq!(outside_inboxes(&dump(&new).await), outside_inboxes(&text));

    let (_, uri) = golden_store("second_rules").await;
    // A server that knows no later rules serves until the move begins.
    let second = Supported { rules: Rules::SECOND.version(), ..Supported::PRESENT };
    let older = Mongo::open_supporting(&uri, Options::default(), second).await.unwrap();
    let older = Arc::new(older).backend();
    assert_second(older.clone()).await;
    for _ in ["first", "again"] {
        upgraded(&uri).await.unwrap();
    }
    let stopped = older.rules.rules(Default::default()).await;
    assert!(stopped.is_err(), "{stopped:?}");
    assert_upgraded(&uri).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collision_blocks_the_move_and_shows_both_identities() {
    let (_, uri) = golden_store("second_rules_collision").await;
    let store = open(&uri).await;
    collide(&*store).await;
    let error = upgraded(&uri).await.unwrap_err();
    assert!(matches!(error, OpenError::Unmovable { count: 1, .. }), "{error}");
    assert_second(store.clone().backend()).await;
    assert_collision(store.clone().backend()).await;

    resolve_collision(&*store).await;
    upgraded(&uri).await.unwrap();
    assert_upgraded(&uri).await;
}

/// Stops a run forever after this message.
async fn interrupted(uri: &str, at: &'static str) {
    let (uri, (said, heard)) = (uri.to_owned(), oneshot::channel());
    std::thread::spawn(move || {
        let said = Mutex::new(Some(said));
        let hang = |line: &str| {
            while line.contains(at) {
                said.lock().unwrap().take().map(|said| said.send(()));
                std::thread::park();
            }
        };
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let outcome = runtime.block_on(upgrade(&uri, &hang));
        panic!("it has ended: {outcome:?}");
    });
    heard.await.unwrap();
}

/// The second point is between the two tenants of the store.
#[tokio::test(flavor = "multi_thread")]
async fn a_half_moved_store_is_served_and_completed() {
    let (_, uri) = golden_store("second_rules_interrupted").await;
    for at in ["being moved", "were moved"] {
        interrupted(&uri, at).await;
        assert_second(backend(&uri).await).await;
    }
    upgraded(&uri).await.unwrap();
    assert_upgraded(&uri).await;
}
