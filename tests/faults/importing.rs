//! Killed imports into a cluster.

use crate::server::Server;
use crate::stores::{cluster, fresh, prepare_sharded};
use crate::support::scenarios::transfer::import_with_kills;

/// Kills an import into a cluster, or its server.
async fn kill_import(times: u32, users: &'static str) {
    let (cluster, _turn) = cluster().await;
    let name = fresh();
    prepare_sharded(cluster, &name).await;
    let uri = cluster.uri(&name);
    let import_with_kills =
        move || import_with_kills(times, users, 3, |_| Server::start(&["--store", &uri]));
    tokio::task::spawn_blocking(import_with_kills).await.unwrap();
    cluster.client().await.database(&name).drop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_import_into_a_cluster_resumes() {
    kill_import(3, "300").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "runs for minutes"]
async fn long_an_import_into_a_cluster_killed_a_hundred_times_resumes() {
    kill_import(100, "3000").await;
}
