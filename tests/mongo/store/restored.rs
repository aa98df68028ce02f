//! The drill of docs/mongodb.md: all collections of a store with users and a running bulk change
//! are copied to another database, as a restore does. It is verified, and a server goes on with it.

use std::collections::HashSet;
use std::thread::sleep;
use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};
use polynym_mongodb::{InitOptions, init};
use polynym_proto::v1;
use polynym_proto::v1::BulkChangeState;
use polynym_proto::v1::start_bulk_change_request::Users;
use tokio::task::block_in_place;

use super::{database, json, store};
use crate::calls::{Client, email, user};
use crate::servers;
use crate::support::scenarios::bulk::{
    changed, create_users, disable, start, until_changed, until_ended, user_ids,
};
use crate::support::scenarios::histories::{events, of};
use crate::support::scenarios::store_command::findings;
use crate::support::server::Server;

const USERS: usize = 800;
const ID: &str = "restored";
const REQUEST: &str = "0c9d2c80-6b0a-4b7e-9d53-3f3d0f6b9a02";

fn serve(uri: &str) -> Server {
    block_in_place(|| Server::start(&["--store", uri]))
}

fn joe() -> v1::CreateUserRequest {
    let joe = user("Joe", vec![email("joe@example.com")]);
    v1::CreateUserRequest { user: Some(joe), request_id: REQUEST.to_owned(), ..Default::default() }
}

async fn create_joe(client: &mut Client) -> v1::User {
    client.registry.create_user(joe()).await.unwrap().into_inner().user.unwrap()
}

/// Fills a store, starts a bulk change of a list of its users, and kills the server in the middle.
/// Returns Joe, who was created before.
async fn fill(uri: &str) -> v1::User {
    let server = serve(uri);
    let mut client = Client::connect(&server.url).await;
    create_users(&mut client, USERS).await;
    let joe = create_joe(&mut client).await;
    let user_ids = user_ids(&mut client).await;
    let request = v1::StartBulkChangeRequest {
        bulk_id: ID.to_owned(),
        users: Some(Users { user_ids }),
        action: disable(),
        ..Default::default()
    };
    start(&mut client, request).await;
    let running = until_changed(&mut client, ID, 100).await;
    assert_eq!(running.state(), BulkChangeState::Running, "{running:?}");
    joe
}

/// Copies all collections: their documents and, as the tools of MongoDB do on a replica set, their
/// options and indexes.
async fn copy(from: &Database, to: &Database, with_options: bool) {
    let reply = from.run_command(doc! { "listCollections": 1 }).await.unwrap();
    let listed = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    for collection in listed.iter().map(|listed| listed.as_document().unwrap()) {
        let name = collection.get_str("name").unwrap();
        if with_options {
            let mut create = doc! { "create": name };
            create.extend(collection.get_document("options").unwrap().clone());
            to.run_command(create).await.unwrap();
        }
        let documents = from.collection::<Document>(name).find(doc! {}).await.unwrap();
        let documents: Vec<_> = documents.try_collect().await.unwrap();
        if !documents.is_empty() {
            let target = to.collection::<Document>(name);
            let insert = target.insert_many(documents).bypass_document_validation(true);
            insert.await.unwrap();
        }
        if with_options {
            create_indexes(from, to, name).await;
        }
    }
}

async fn create_indexes(from: &Database, to: &Database, name: &str) {
    let reply = from.run_command(doc! { "listIndexes": name }).await.unwrap();
    let indexes = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    let is_own = |index: &&Bson| {
        let index = index.as_document().unwrap();
        index.get_str("name").unwrap() != "_id_" && !index.contains_key("clustered")
    };
    let indexes: Vec<_> = indexes.iter().filter(is_own).cloned().collect();
    if !indexes.is_empty() {
        to.run_command(doc! { "createIndexes": name, "indexes": indexes }).await.unwrap();
    }
}

/// The texts of the advice of `store status`, once it knows that the server was killed.
fn advice(uri: &str) -> String {
    for _ in 0..120 {
        let status = json(&store(&["status", "--json"], uri)).pop().unwrap();
        assert_eq!(status["missing"], serde_json::json!([]), "{status}");
        if status["advice"] != serde_json::json!([]) {
            return status["advice"].to_string();
        }
        sleep(Duration::from_millis(500));
    }
    panic!("a killed server counts as running");
}

/// Checks a restored store: `store status` names what is to be decided, `store verify` finds
/// nothing, and a server goes on with the bulk change and the requests.
async fn check(uri: &str, joe: &v1::User) {
    let text = block_in_place(|| advice(uri));
    assert!(text.contains("1 bulk change is running"), "{text}");
    assert!(text.contains("1 server is registered, and none runs"), "{text}");
    assert_eq!(block_in_place(|| findings(&[], uri)), []);

    let removed = database(uri).await.collection::<Document>("servers");
    assert!(removed.delete_many(doc! {}).await.unwrap().deleted_count > 0);
    let server = serve(uri);
    let mut client = Client::connect(&server.url).await;
    assert_eq!(create_joe(&mut client).await.user_id, joe.user_id, "the request is remembered");
    // The bulk change may have disabled Joe by now.
    let request = v1::ResolveIdentityRequest {
        identifier: Some(email("joe@example.com")),
        show_disabled: true,
        ..Default::default()
    };
    let found = client.directory.resolve_identity(request).await.unwrap().into_inner();
    assert_eq!(found.user.unwrap().user_id, joe.user_id);
    let ended = until_ended(&mut client, ID).await;
    assert_eq!(ended.state(), BulkChangeState::Completed, "{ended:?}");
    assert_eq!(changed(&ended), USERS as i64 + 1);
    let ids = user_ids(&mut client).await;
    for id in &ids {
        let events = events(&mut client, of(id)).await;
        assert_eq!(events.iter().filter(|event| event.operation_id == ID).count(), 1, "{id}");
    }
    let used: HashSet<_> = ids.iter().collect();
    for n in 0..20 {
        let new = client.create(user("New", vec![email(&format!("new{n}@example.com"))])).await;
        assert!(!used.contains(&new.unwrap().user_id), "an id is used again");
    }
    drop(server);
    assert_eq!(block_in_place(|| findings(&[], uri)), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_database_is_the_store_as_it_was() {
    let set = servers::one_member().await;
    let [uri, copied] = ["restored_from", "restored_to"].map(|name| set.uri(name, ""));
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    let joe = fill(&uri).await;
    copy(&database(&uri).await, &database(&copied).await, true).await;
    check(&copied, &joe).await;

    // As the page says, the jobs that ran are removed instead.
    let bulk = database(&uri).await.collection::<Document>("bulk");
    bulk.delete_many(doc! { "a": true }).await.unwrap();
    let found = block_in_place(|| findings(&["--repair"], &uri));
    let is_list = |(word, _): &(String, String)| word == "stray_bulk_users";
    assert!(!found.is_empty() && found.iter().all(is_list), "{found:?}");
    assert_eq!(block_in_place(|| findings(&[], &uri)), []);
    let server = serve(&uri);
    let mut client = Client::connect(&server.url).await;
    let request = v1::GetBulkChangeRequest { bulk_id: ID.to_owned(), ..Default::default() };
    assert_eq!(
        client.registry.get_bulk_change(request).await.unwrap_err().code(),
        tonic::Code::NotFound
    );
}

/// On a cluster, `store init` makes the collections, and the documents alone are restored.
#[tokio::test(flavor = "multi_thread")]
async fn documents_are_restored_into_a_sharded_store() {
    let cluster = servers::three_shards().await;
    let [uri, copied] = ["sharded_from", "sharded_to"].map(|name| cluster.uri(name));
    for uri in [&uri, &copied] {
        init(uri, &InitOptions::default(), &|_| {}).await.unwrap();
    }
    let joe = fill(&uri).await;
    let target = database(&copied).await;
    target.collection::<Document>("meta").delete_many(doc! {}).await.unwrap();
    copy(&database(&uri).await, &target, false).await;
    init(&copied, &InitOptions::default(), &|_| {}).await.unwrap();
    check(&copied, &joe).await;
}
