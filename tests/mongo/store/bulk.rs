//! Bulk changes on MongoDB.

use polynym_mongodb::{InitOptions, init};

use crate::servers;
use crate::support::scenarios::bulk::killed_servers_lose_and_repeat_nothing;

#[tokio::test(flavor = "multi_thread")]
async fn killed_servers_lose_no_part_of_a_bulk_change() {
    let uri = servers::one_member().await.uri("bulk_killed", "");
    init(&uri, &InitOptions::default(), &|_| {}).await.unwrap();
    killed_servers_lose_and_repeat_nothing(&uri).await;
}
