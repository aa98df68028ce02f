//! The front end's cursors, snapshots and administrative commands: as those of a router.

use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::bson::{Document, doc};
use mongodb::change_stream::event::ChangeStreamEvent;
use mongodb::error::ErrorKind;
use mongodb::options::WriteConcern;
use mongodb::{Client, Collection};
use tokio::time::sleep;

use super::cluster;
use super::cluster::{KEYS, begin, spread, thing};
use crate::servers::{Layout, Sharded, Signal};

fn has_code(error: &mongodb::error::Error, code: i32) -> bool {
    matches!(&*error.kind, ErrorKind::Command(error) if error.code == code)
}

#[tokio::test]
async fn a_cursor_reads_all_shards_in_batches() {
    let things = spread(cluster().await, "cursors").await;
    things.insert_many(KEYS.map(|key| thing(key, 0))).await.unwrap();
    let all = things.find(doc! {}).batch_size(2).await.unwrap();
    assert_eq!(all.try_collect::<Vec<_>>().await.unwrap().len(), KEYS.len());
    let some = things.find(doc! {}).batch_size(2).limit(5).await.unwrap();
    assert_eq!(some.try_collect::<Vec<_>>().await.unwrap().len(), 5);

    let mut session = begin(&things).await;
    things.insert_one(thing("h4", 0)).session(&mut session).await.unwrap();
    let mut cursor = things.find(doc! {}).batch_size(2).session(&mut session).await.unwrap();
    let all: Vec<Document> = cursor.stream(&mut session).try_collect().await.unwrap();
    assert_eq!(all.len(), KEYS.len() + 1, "a transaction sees its own write");
    session.commit_transaction().await.unwrap();
    assert_eq!(things.count_documents(doc! {}).await.unwrap(), KEYS.len() as u64 + 1);
}

/// A router knows the times that shards have told it, not the newest of all shards.
#[tokio::test]
async fn a_snapshot_has_the_time_that_its_router_knows() {
    let cluster = cluster().await;
    let things = spread(cluster, "snapshots").await;
    things.insert_many(KEYS.map(|key| thing(key, 0))).await.unwrap();
    let uri = cluster.uri_at(cluster.another_router().await, "snapshots");
    let client = Client::with_uri_str(uri).await.unwrap();
    let others: Collection<Document> = client.database("snapshots").collection("things");
    others.find_one(doc! { "_id": "h1" }).await.unwrap().unwrap();
    let find = async |key: &str| {
        let mut session = client.start_session().snapshot(true).await.unwrap();
        others.find_one(doc! { "_id": key }).session(&mut session).await.unwrap()
    };

    // A time has seconds and a number within them, in which shards may be ahead of each other.
    sleep(Duration::from_millis(1_100)).await;
    things.insert_one(thing("s4", 0)).await.unwrap();
    assert_eq!(find("s4").await, None, "the other router cannot know of it");
    others.find_one(doc! {}).await.unwrap().unwrap();
    assert_eq!(find("s4").await, Some(thing("s4", 0)), "now it has the time of each shard");
}

#[tokio::test]
async fn a_change_stream_has_the_changes_of_all_shards_in_order() {
    let things = spread(cluster().await, "changes").await;
    let mut stream = things.watch().await.unwrap();
    for key in KEYS {
        let insert = things.insert_one(thing(key, 0));
        insert.write_concern(WriteConcern::majority()).await.unwrap();
    }
    let mut changes = Vec::new();
    while changes.len() < KEYS.len() {
        changes.push(stream.try_next().await.unwrap().unwrap());
    }
    let key = |change: &ChangeStreamEvent<Document>| {
        change.document_key.as_ref().unwrap().get_str("_id").unwrap().to_owned()
    };
    assert_eq!(changes.iter().map(key).collect::<Vec<_>>(), KEYS);

    let fourth = changes[3].id.clone();
    let mut stream = things.watch().resume_after(fourth).await.unwrap();
    for wanted in &KEYS[4..] {
        assert_eq!(key(&stream.try_next().await.unwrap().unwrap()), *wanted);
    }
    assert!(stream.next_if_any().await.unwrap().is_none());
}

#[tokio::test]
async fn a_changed_collection_changes_on_all_shards() {
    let cluster = cluster().await;
    let things = spread(cluster, "changed").await;
    let validator = doc! { "n": { "$type": "int" } };
    let change = doc! { "collMod": "things", "validator": &validator };
    things.client().database("changed").run_command(change).await.unwrap();
    for shard in &cluster.shards {
        let database = shard.members[0].database("changed").await;
        let found = database.list_collections().await.unwrap().try_collect::<Vec<_>>().await;
        let options = found.unwrap().pop().unwrap().options;
        assert_eq!(options.validator.as_ref(), Some(&validator), "{}", shard.name);
    }
}

#[tokio::test]
async fn a_router_waits_for_a_shard_that_is_away() {
    let cluster = Sharded::start(2, Layout::default()).await;
    let things = spread(&cluster, "away").await;
    let insert = things.insert_many(KEYS.map(|key| thing(key, 0)));
    insert.write_concern(WriteConcern::majority()).await.unwrap();
    let away = &cluster.shards[1].members[0];
    away.signal(Signal::Kill).await;

    let find = || things.find_one(doc! { "_id": "h1" });
    let late = find().max_time(Duration::from_millis(300)).await.unwrap_err();
    assert!(has_code(&late, 50), "{late}");
    assert_eq!(things.find_one(doc! { "_id": "a1" }).await.unwrap(), Some(thing("a1", 0)));
    let kill = cluster.admin(doc! { "killSessions": [] }).await.unwrap_err();
    assert!(has_code(&kill, 125), "{kill}");

    let (found, ()) = tokio::join!(find().max_time(Duration::from_secs(60)), async {
        sleep(Duration::from_millis(200)).await;
        away.restart().await;
    });
    assert_eq!(found.unwrap(), Some(thing("h1", 0)));
    cluster.admin(doc! { "killSessions": [] }).await.unwrap();
}
