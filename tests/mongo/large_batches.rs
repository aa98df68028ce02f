//! Batches whose documents exceed the size of a command.

use mongodb::bson::{Document, doc};
use polynym_directory::{IdempotencyKey, Mutation, Mutations};
use polynym_mongodb::{InitOptions, Mongo, Options, init};

use crate::servers::{Layout, ReplicaSet};
use crate::support::users;

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_20_mib_is_one_transaction() {
    /// Each has 400 KiB.
    const USERS: usize = 50;
    // A cache of 0.25 GiB may be full of a transaction of this size.
    let set = ReplicaSet::start(Layout { cache: 1.0, ..Layout::default() }).await;
    let uri = set.uri("large_batch", "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    let store = Mongo::open(&uri, Options::default()).await.unwrap();
    let database = set.client().await.database("large_batch");
    database.run_command(doc! { "profile": 2 }).await.unwrap();
    let line = |n: usize| {
        let request = Some(IdempotencyKey { key: format!("line {n}"), request_hash: 1 });
        Mutation { request, ..users::large_creation(n) }
    };
    for outcome in store.mutate_all((0..USERS).map(line).collect()).await {
        outcome.unwrap();
    }
    database.run_command(doc! { "profile": 0 }).await.unwrap();
    let profile = database.collection::<Document>("system.profile");
    let inserts = doc! { "op": "insert", "ns": "large_batch.users" };
    let inserts = profile.count_documents(inserts).await.unwrap();
    assert!((2..=3).contains(&inserts), "{inserts} commands");
    let people = database.collection::<Document>("users");
    assert_eq!(people.count_documents(doc! {}).await.unwrap(), USERS as u64);
    store.close().await;
}
