//! The heartbeat of open stores: each has a document, which it renews for as long as it is open.

use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::bson::{Bson, DateTime, Document, doc};
use polynym_directory::{Mutations, Timestamp};
use tokio::time::{sleep, timeout};

use super::servers::{self, Databases, InDatabase};
use crate::support::users;

/// Far longer than any of this takes.
const LONG: Duration = Duration::from_secs(60);

/// The documents of the servers of a store: their ids and times.
async fn present(place: &InDatabase) -> Vec<(Bson, DateTime)> {
    let database = servers::one_member().await.client().await.database(place.name().await);
    let found = database
        .collection::<Document>("servers")
        .find(doc! {})
        .sort(doc! { "_id": 1 })
        .await
        .unwrap();
    let found: Vec<Document> = found.try_collect().await.unwrap();
    found
        .iter()
        .map(|one| (one.get("_id").unwrap().clone(), *one.get_datetime("t").unwrap()))
        .collect()
}

/// The documents, as soon as they are as they should be.
async fn until(
    place: &InDatabase,
    fits: impl Fn(&[(Bson, DateTime)]) -> bool,
) -> Vec<(Bson, DateTime)> {
    let wait = async {
        loop {
            let found = present(place).await;
            if fits(&found) {
                return found;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LONG, wait).await.expect("the documents of the servers are not as they should be")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_store_renews_its_document_until_it_is_closed() {
    let place = Databases::of_set(servers::one_member().await, "").place();
    let (first, second) = (place.mongo().await.unwrap(), place.mongo().await.unwrap());
    let both = until(&place, |found| found.len() == 2).await;
    let later = |found: &[(Bson, DateTime)]| {
        both.iter().zip(found).all(|(old, new)| old.0 == new.0 && old.1 < new.1)
    };
    until(&place, later).await;
    let reading = first.beat().reading.unwrap();
    assert!(reading.before <= reading.after, "{reading:?}");
    let off = reading.database.as_millis().abs_diff(reading.before.as_millis());
    assert!(off < 60_000, "the servers of the test run on this machine: {reading:?}");
    first.close().await;
    let left = until(&place, |found| found.len() == 1).await;
    assert!(both.iter().any(|one| one.0 == left[0].0), "{left:?}");
    second.close().await;
    until(&place, |found| found.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_was_deleted_is_written_again() {
    let place = Databases::of_set(servers::one_member().await, "").place();
    let store = place.mongo().await.unwrap();
    let first = until(&place, |found| found.len() == 1).await;
    let database = servers::one_member().await.client().await.database(place.name().await);
    database.collection::<Document>("servers").delete_many(doc! {}).await.unwrap();
    until(&place, |found| found.len() == 1 && found[0].1 > first[0].1).await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_created_in_a_store_of_an_older_program() {
    let place = Databases::of_set(servers::one_member().await, "").place();
    let database = servers::one_member().await.client().await.database(place.name().await);
    database.collection::<Document>("servers").drop().await.unwrap();
    let store = place.mongo().await.unwrap();
    store.mutate(users::creation(0)).await.unwrap();
    // A beat comes at once, and again two seconds later.
    sleep(Duration::from_millis(2_500)).await;
    assert!(users::look_up(&store, 0).await.unwrap());
    let now = Timestamp::now();
    let time = store.time(now).expect("the server itself is asked for its time");
    assert!(now.millis_after(time).abs() < 60_000, "{time:?}");
    let names = database.list_collection_names().await.unwrap();
    assert!(!names.iter().any(|name| name == "servers"), "{names:?}");
    store.close().await;
}
