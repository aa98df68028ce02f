//! The ids of imported users: sequential ids share a shard at any time.

use mongodb::bson::{RawDocumentBuf, doc};
use polynym_mongodb::{InitOptions, init};

use crate::server::Server;
use crate::servers::{self, Sharded};
use crate::support::output::stderr;
use crate::support::scenarios::transfer::{import, sample};

/// Users of each kind.
const USERS: &str = "200";

/// The users of a tenant on each shard.
async fn by_shard(cluster: &Sharded, database: &str, tenant: &str) -> Vec<u64> {
    let mut counts = Vec::new();
    for shard in &cluster.shards {
        let shard_database = shard.members[0].database(database).await;
        let users = shard_database.collection::<RawDocumentBuf>("users");
        counts.push(users.count_documents(doc! { "t": tenant }).await.unwrap());
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn only_sequential_ids_lie_on_one_shard() {
    let cluster = servers::three_shards().await;
    let uri = cluster.uri("import_ids");
    init(&uri, &InitOptions { spread: true }, &|_| {}).await.unwrap();
    let importing = tokio::task::spawn_blocking(move || {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(&["--store", &uri, "--tenants", "open"]);
        let users = sample(&["--users", USERS, "--dirty", "0"]);
        for ids in ["variable", "sequential"] {
            let arguments = ["--tenant", ids, "--ids", ids];
            let output = import(&server, folder.path(), &arguments, &users);
            assert!(output.status.success(), "{}", stderr(&output));
        }
    });
    importing.await.unwrap();

    let spread = by_shard(cluster, "import_ids", "variable").await;
    let together = by_shard(cluster, "import_ids", "sequential").await;
    assert!(spread.iter().all(|users| *users > 20), "{spread:?}");
    // Two if a time window ended meanwhile.
    let shards = together.iter().filter(|users| **users > 0).count();
    assert!(shards <= 2, "{together:?}");
    assert_eq!(together.iter().sum::<u64>(), 200);
}
