//! The heartbeat of open stores: each renews a document of its own.

use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::bson::{Bson, DateTime, Document, Uuid, doc};
use polynym_directory::{Histories, Mutations, StoreClock, Timestamp};
use polynym_mongodb::{Mongo, Options};
use tokio::time::{sleep, timeout};

use super::servers::{self, Databases, InDatabase, Layout, ReplicaSet, make};
use crate::support::users;

/// The time limit of each wait.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The documents of the servers of a store: their ids and times.
async fn present(factory: &InDatabase) -> Vec<(Bson, DateTime)> {
    let database = servers::one_member().await.client().await.database(factory.name().await);
    let cursor = database
        .collection::<Document>("servers")
        .find(doc! {})
        .sort(doc! { "_id": 1 })
        .await
        .unwrap();
    let found: Vec<Document> = cursor.try_collect().await.unwrap();
    found
        .iter()
        .map(|one| (one.get("_id").unwrap().clone(), *one.get_datetime("t").unwrap()))
        .collect()
}

/// Waits until the documents satisfy a condition. Returns them.
async fn until(
    factory: &InDatabase,
    fits: impl Fn(&[(Bson, DateTime)]) -> bool,
) -> Vec<(Bson, DateTime)> {
    let wait = async {
        loop {
            let found = present(factory).await;
            if fits(&found) {
                return found;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(TIMEOUT, wait).await.expect("the documents satisfy the condition")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_store_renews_its_document_until_it_is_closed() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let (first, second) = (factory.mongo().await.unwrap(), factory.mongo().await.unwrap());
    let both = until(&factory, |found| found.len() == 2).await;
    let later = |found: &[(Bson, DateTime)]| {
        both.iter().zip(found).all(|(old, new)| old.0 == new.0 && old.1 < new.1)
    };
    until(&factory, later).await;
    let reading = first.beat().reading.unwrap();
    assert!(reading.before <= reading.after, "{reading:?}");
    let off = reading.database.as_millis().abs_diff(reading.before.as_millis());
    assert!(off < 60_000, "the servers of the test run on this machine: {reading:?}");
    first.close().await;
    let left = until(&factory, |found| found.len() == 1).await;
    assert!(both.iter().any(|one| one.0 == left[0].0), "{left:?}");
    second.close().await;
    until(&factory, |found| found.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_take_turns_at_looking_for_expired_users() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let stores = [factory.mongo().await.unwrap(), factory.mongo().await.unwrap()];
    // A store that does not look for expired users takes no turn.
    let third = factory.mongo().await.unwrap();
    let turns = || [&stores[0], &stores[1]].map(|store| store.has_expiry_turn());
    let wait = async {
        // Until it has heard of others, a server has the turn.
        while turns().into_iter().filter(|turn| *turn).count() != 1 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(TIMEOUT, wait).await.expect("one of two servers has the turn");
    let first = usize::from(!turns()[0]);
    stores[first].close().await;
    let other = &stores[1 - first];
    let wait = async {
        while !other.has_expiry_turn() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(TIMEOUT, wait).await.expect("the other server has the turn");
    other.close().await;
    third.close().await;
}

/// A router asks all members of all shards to end sessions, also dead ones, which takes long.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_renews_its_document_while_sessions_of_a_dead_one_end_slowly() {
    /// The milliseconds that the end of sessions takes: a beat that waited for it would be as late.
    const SLOW: i64 = 30_000;
    let set = ReplicaSet::start(Layout::default()).await;
    let uri = set.uri("slow_ends", "");
    make(uri.clone()).await;
    let servers = set.client().await.database("slow_ends").collection::<Document>("servers");
    let slow = doc! {
        "failCommands": ["killSessions"], "blockConnection": true, "blockTimeMS": SLOW,
        "appName": "polynym heartbeat",
    };
    let fail = doc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": slow };
    set.members[0].admin(fail).await.unwrap();
    let id = || Bson::from(Uuid::new());
    let long_ago = DateTime::from_millis(DateTime::now().timestamp_millis() - 60_000);
    let dead = doc! { "_id": id(), "t": long_ago, "s": [id()] };
    servers.insert_one(&dead).await.unwrap();

    let store = Mongo::open(&uri, Options::default()).await.unwrap();
    let is_own = doc! { "_id": { "$ne": dead.get("_id") } };
    let mut renewed = Vec::<DateTime>::new();
    let wait = async {
        // The dead server is found in the third beat.
        while renewed.len() < 6 {
            let own = servers.find_one(is_own.clone()).await.unwrap();
            let time = own.map(|own| *own.get_datetime("t").unwrap());
            renewed.extend(time.filter(|time| renewed.last().is_none_or(|last| time > last)));
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(TIMEOUT, wait).await.expect("the document is renewed");
    let off = doc! { "configureFailPoint": "failCommand", "mode": "off" };
    let entered = set.members[0].admin(off).await.unwrap();
    assert!(entered.get_i32("count").unwrap() > 0, "{entered}");
    let gaps = renewed.windows(2).map(|two| two[1].timestamp_millis() - two[0].timestamp_millis());
    assert!(gaps.clone().all(|gap| gap < SLOW - 5_000), "{:?}", gaps.collect::<Vec<_>>());
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_document_is_rewritten() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let store = factory.mongo().await.unwrap();
    let first = until(&factory, |found| found.len() == 1).await;
    let database = servers::one_member().await.client().await.database(factory.name().await);
    database.collection::<Document>("servers").delete_many(doc! {}).await.unwrap();
    until(&factory, |found| found.len() == 1 && found[0].1 > first[0].1).await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_created_in_a_store_without_a_list_of_servers() {
    let factory = Databases::of_set(servers::one_member().await, "").factory();
    let database = servers::one_member().await.client().await.database(factory.name().await);
    database.collection::<Document>("servers").drop().await.unwrap();
    let store = factory.mongo().await.unwrap();
    store.mutate(users::creation(0)).await.unwrap();
    // The first beat is immediate, the next two seconds later.
    sleep(Duration::from_millis(2_500)).await;
    assert!(users::look_up(&store, 0).await.unwrap());
    let now = Timestamp::now();
    let time = store.time(now).expect("the server returns its time");
    assert!(now.millis_after(time).abs() < 60_000, "{time:?}");
    let names = database.list_collection_names().await.unwrap();
    assert!(!names.iter().any(|name| name == "servers"), "{names:?}");
    store.close().await;
}
