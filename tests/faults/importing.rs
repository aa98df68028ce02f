//! Imports into a cluster that are broken off, and go on.

use crate::place::{cluster, fresh, prepare_sharded};
use crate::server::Server;
use crate::support::scenarios::transfer::broken_off;

/// The same into a store on a cluster.
async fn broken_off_on_a_cluster(times: u32, users: &'static str) {
    let (cluster, _turn) = cluster().await;
    let name = fresh();
    prepare_sharded(cluster, &name).await;
    let uri = cluster.uri(&name);
    let broken_off = move || broken_off(times, users, 3, |_| Server::start(&["--store", &uri]));
    tokio::task::spawn_blocking(broken_off).await.unwrap();
    cluster.client().await.database(&name).drop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_into_a_cluster_that_is_broken_off_goes_on() {
    broken_off_on_a_cluster(3, "300").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "runs for minutes"]
async fn long_an_import_into_a_cluster_that_is_broken_off_a_hundred_times_goes_on() {
    broken_off_on_a_cluster(100, "3000").await;
}
