//! Deliveries of events on MongoDB.

use mongodb::bson::{Document, doc};
use polynym_mongodb::{InitOptions, init};

use crate::calls::Client;
use crate::server::Server;
use crate::servers;
use crate::support::receiver::Receiver;
use crate::support::scenarios::delivering::{
    TO_THIS_MACHINE, a_pause_loses_nothing, an_event_holds_up_its_user_alone, create, creation,
    killed_servers_lose_no_event,
};
use crate::support::scenarios::store_command::{database, findings};

async fn prepared(name: &str) -> String {
    let uri = servers::one_member().await.uri(name, "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    uri
}

fn start(uri: &str) -> Server {
    tokio::task::block_in_place(|| Server::start(&["--store", uri, TO_THIS_MACHINE]))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_not_taken_holds_up_its_user_alone() {
    let server = start(&prepared("delivery_held").await);
    an_event_holds_up_its_user_alone(&mut Client::connect(&server.url).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_delivery_loses_nothing() {
    let server = start(&prepared("delivery_paused").await);
    a_pause_loses_nothing(&mut Client::connect(&server.url).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_loses_no_event() {
    let uri = prepared("delivery_killed").await;
    killed_servers_lose_no_event(|| start(&uri)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_delivery_is_found() {
    let uri = prepared("delivery_damaged").await;
    let server = start(&uri);
    let receiver = Receiver::start().await;
    let mut client = Client::connect(&server.url).await;
    create(&mut client, creation(&receiver)).await.unwrap();
    let verify = || tokio::task::block_in_place(|| findings(&[], &uri));
    assert_eq!(verify(), []);
    let bulk = database(&uri).await.collection::<Document>("bulk");
    let marked = doc! { "$set": { "w": "no delivery" } };
    let options = doc! { "_id": "@default/hook" };
    let update = bulk.update_one(options, marked).bypass_document_validation(true);
    assert_eq!(update.await.unwrap().modified_count, 1);
    let found = verify();
    assert!(found.len() == 1 && found[0].0 == "unreadable_bulk", "{found:?}");
}
