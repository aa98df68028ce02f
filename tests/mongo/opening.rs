//! Databases that are not opened as a store, and the errors.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mongodb::bson::{Document, doc};
use polynym_mongodb::{Mongo, OpenError, Options};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_blocking;

use super::server::{Server, polynym};
use super::servers::{self, Databases, Process};
use crate::scrape::free_address;

/// The maximum time of a step on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

async fn refusal(uri: &str) -> OpenError {
    Mongo::open(uri, Options::default()).await.err().expect("a store was opened")
}

#[tokio::test]
async fn a_database_without_a_store_is_refused() {
    let set = servers::one_member().await;
    let error = refusal(&set.uri("nothing_here", "")).await;
    assert!(
        matches!(&error, OpenError::NotInitialised { database } if database == "nothing_here"),
        "{error}"
    );
    assert!(
        set.client()
            .await
            .database("nothing_here")
            .list_collection_names()
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_store_of_another_version_is_refused() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    factory.mongo().await.unwrap();
    let database = servers::one_member().await.client().await.database(factory.name().await);
    let meta = database.collection::<Document>("meta");
    meta.update_one(doc! { "_id": "schema" }, doc! { "$inc": { "v": 1 } }).await.unwrap();
    let error = factory.mongo().await.err().expect("a store of a later version was opened");
    assert!(matches!(&error, OpenError::Version { found, .. } if *found > 1), "{error}");
    meta.update_one(doc! { "_id": "schema" }, doc! { "$inc": { "v": -2 } }).await.unwrap();
    let error = factory.mongo().await.err().expect("a store of an earlier version was opened");
    let text = error.to_string();
    assert!(matches!(error, OpenError::Version { .. }), "{text}");
    let advice = "export it with the program that wrote it, and import that with this one";
    assert!(text.contains(advice), "{text}");
    meta.update_one(doc! {}, doc! { "$inc": { "v": 1 }, "$set": { "n": 3_i64 } }).await.unwrap();
    let error = factory.mongo().await.err().expect("a store of earlier rules was opened");
    assert!(error.to_string().contains("rules version 3"), "{error}");
    assert!(error.to_string().contains(advice), "{error}");
}

#[tokio::test]
async fn a_server_without_transactions_is_refused() {
    let alone = Process::start_alone().await;
    let error = refusal(&format!("mongodb://{}/polynym", alone.address())).await;
    assert!(matches!(error, OpenError::Standalone), "{error}");
    assert!(error.to_string().contains("--replSet"), "{error}");
}

#[tokio::test]
async fn invalid_uris_are_explained() {
    let set = servers::one_member().await;
    let error = refusal(&format!("mongodb://{}/", set.host(0))).await;
    assert!(matches!(error, OpenError::Uri(_)), "{error}");
    let error = refusal("mongodb://127.0.0.1:1/polynym?serverSelectionTimeoutMS=2000").await;
    assert!(matches!(error, OpenError::Unreachable(_)), "{error}");
}

#[tokio::test]
async fn an_incomplete_store_is_refused() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    factory.mongo().await.unwrap();
    let database = servers::one_member().await.client().await.database(factory.name().await);
    let requests = database.collection::<Document>("requests");
    requests.drop_index("t_1").await.unwrap();
    let error = factory.mongo().await.err().expect("a store without an index was opened");
    assert!(
        matches!(&error, OpenError::Incomplete { what, .. } if what.contains("index")),
        "{error}"
    );
    assert!(error.to_string().contains("polynym store init"), "{error}");
    requests.drop().await.unwrap();
    let error = factory.mongo().await.err().expect("a store without a collection was opened");
    let OpenError::Incomplete { what, .. } = &error else { panic!("{error}") };
    assert!(what.contains("collection requests"), "{error}");
    database.create_collection("requests").capped(true).size(4096).await.unwrap();
    let error = factory.mongo().await.err().expect("a store with a foreign collection was opened");
    assert!(
        matches!(&error, OpenError::Foreign { what, .. } if what.contains("requests")),
        "{error}"
    );
}

/// Carries connections from one address to another.
async fn forward(from: SocketAddr, to: SocketAddr) {
    let listener = TcpListener::bind(from).await.unwrap();
    loop {
        let (mut near, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let mut far = TcpStream::connect(to).await.unwrap();
            let _ = copy_bidirectional(&mut near, &mut far).await;
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_waits_serves_once_its_database_is_there() {
    let set = servers::one_member().await;
    let factory = Databases::of_set(set, "").factory();
    factory.mongo().await.unwrap();
    let (address, name) = (free_address(), factory.name().await);
    let options = "directConnection=true&serverSelectionTimeoutMS=2000";
    let store = format!("mongodb://{address}/{name}?{options}");
    let log = tempfile::NamedTempFile::new().unwrap();
    let errors = log.reopen().unwrap();
    let starting = spawn_blocking(move || {
        let serve = ["serve", "--listen", "127.0.0.1:0", "--wait-for-store", "600s"];
        Server::start_with(polynym(&serve).stderr(errors), &["--store", &store])
    });
    let start = Instant::now();
    while !std::fs::read_to_string(log.path()).unwrap().contains("trying again") {
        assert!(start.elapsed() < TIMEOUT, "{}", std::fs::read_to_string(log.path()).unwrap());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!starting.is_finished());

    tokio::spawn(forward(address, set.host(0)));
    let server = starting.await.unwrap();
    let created = spawn_blocking(move || server.run(&["user", "create", "--name", "X"]));
    let created = created.await.unwrap();
    assert!(created.status.success(), "{created:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_does_not_wait_for_a_store_that_was_not_made() {
    let set = servers::one_member().await;
    let serve = ["serve", "--listen", "127.0.0.1:0", "--wait-for-store", "600s"];
    let uri = set.uri("nothing_here", "");
    let output =
        spawn_blocking(move || polynym(&serve).env("POLYNYM_STORE", uri).output().unwrap());
    let output = output.await.unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && text.contains("polynym store init"), "{text}");
    assert!(!text.contains("trying again"), "{text}");
}
