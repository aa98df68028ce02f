//! The store on a sharded cluster of MongoDB: the conformance suite, the cost of calls on each
//! shard, and the shards that each method of the API reaches.

mod costs;
mod hung_shard;
mod ranges;
mod shards;

use std::sync::{Arc, OnceLock};

use conformance::StoreFactory;
use mongodb::bson::{Document, doc};
use mongodb::options::WriteConcern;
use polynym_mongodb::status;

use crate::servers::{self, Databases};
use crate::support;

/// MongoDB 8.0 lists collections that are not sharded among those that are.
#[tokio::test(flavor = "multi_thread")]
async fn an_unsplittable_collection_is_not_sharded() {
    let (cluster, factory) = (servers::three_shards().await, databases().await.factory());
    let (uri, name) = (factory.uri().await, factory.name().await);
    assert!(status(&uri).await.unwrap().missing.is_empty());
    let config = cluster.config.members[0].database("config").await;
    let entries = config.collection::<Document>("collections");
    let set = async |change: Document| {
        let users = doc! { "_id": format!("{name}.users") };
        let majority = WriteConcern::majority();
        entries.update_one(users, change).write_concern(majority).await.unwrap();
    };
    set(doc! { "$set": { "unsplittable": true } }).await;
    let found = status(&uri).await.unwrap();
    set(doc! { "$unset": { "unsplittable": true } }).await;
    assert_eq!(found.missing, ["the sharding of users"]);
    let users = found.collections.iter().find(|collection| collection.name == "users").unwrap();
    assert_eq!(users.shard_key, None);
    assert!(users.shards.iter().all(|shard| shard.chunks.is_none()), "{users:?}");
    assert!(status(&uri).await.unwrap().missing.is_empty());
}

/// Random runs compared with the model.
const RUNS: u32 = 4;

/// The shared databases of this file.
async fn databases() -> Arc<Databases> {
    static SHARED: OnceLock<Arc<Databases>> = OnceLock::new();
    let cluster = servers::three_shards().await;
    SHARED.get_or_init(|| Databases::of_cluster(cluster)).clone()
}

/// The rooms of the suite whose cases read or change several shards.
pub const ACROSS_SHARDS: [&str; 21] = [
    "auditing::",
    "concurrency::",
    "duplicates::",
    "exporting::",
    "feed::",
    "importing::",
    "inboxes::",
    "isolation::",
    "link_model::",
    "merge_links::",
    "merging::",
    "merging_concurrently::",
    "paging::",
    "purging::",
    "quantity::",
    "renormalizing::",
    "runs::",
    "searching::",
    "survival::",
    "undoing::",
    "usage::",
];

#[tokio::test(flavor = "multi_thread")]
async fn conformance() {
    let databases = databases().await;
    let factory = || -> Arc<dyn StoreFactory> { Arc::new(databases.factory()) };
    support::conformance_of(&ACROSS_SHARDS, factory).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_conformance() {
    let databases = databases().await;
    support::conformance(|| Arc::new(databases.factory())).await;
}

#[test]
fn random_operations_agree_with_the_model() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let databases = runtime.block_on(databases());
    support::steps::against_the_model(RUNS, || databases.factory());
}
