//! What must follow each change of users, on MongoDB; the copy is on the embedded store.

use polynym_mongodb::{InitOptions, init};

use crate::servers;
use crate::support::scenarios::changes::all_follow_each_change;
use crate::support::scenarios::changes::killed_undo::a_killed_undo_is_completed;

/// Follows the changes on a database of MongoDB.
async fn follow(uri: &str) {
    init(uri, &InitOptions::default(), &|_| {}).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let copy = format!("embedded:{}", folder.path().join("store").display());
    all_follow_each_change(uri, &copy, folder.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_follow_each_change_on_a_replica_set() {
    follow(&servers::one_member().await.uri("changes", "")).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes two minutes, three times those of a replica set"]
async fn long_all_follow_each_change_on_a_cluster() {
    follow(&servers::three_shards().await.uri("changes")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_undo_is_completed_on_a_replica_set() {
    let uri = servers::one_member().await.uri("killed_undo", "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    a_killed_undo_is_completed(&uri).await;
}
