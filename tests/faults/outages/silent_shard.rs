//! A shard that hangs behind a router, which waits for it in silence: no command waits for ever.

use std::time::Duration;

use mongodb::bson::Bson;
use polynym_mongodb::{Mongo, Options, upgrade};
use tokio::time::{Instant, sleep, timeout};

use crate::servers::{Layout, Sharded, Signal, make};
use crate::stores::print_line;

/// The shard that hangs. The front end routes by the first one.
const FROZEN: usize = 1;
/// The time of the commands of a beat, and of a step of an upgrade, with a margin.
const BEAT: Duration = Duration::from_secs(45);
const STEP: Duration = Duration::from_secs(150);

/// A server whose heartbeat waits for its document closes, and an upgrade ends with an error. Both
/// work again afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_and_upgrades_do_not_wait_for_ever() {
    let cluster = Sharded::start(2, Layout::default()).await;
    let uri = cluster.uri("silent");
    make(uri.clone()).await;
    let shard = &cluster.shards[FROZEN];
    for collection in ["servers", "tenants"] {
        let space = format!("silent.{collection}");
        cluster.move_chunk(&space, Bson::MinKey, &shard.name).await.unwrap();
    }
    let store = Mongo::open(&uri, Options::default()).await.unwrap();
    // The next beat begins while the shard hangs.
    shard.members[0].signal(Signal::Stop).await;
    sleep(Duration::from_secs(4)).await;
    let start = Instant::now();
    timeout(BEAT, store.close()).await.expect("the heartbeat ends");
    let closed = start.elapsed();
    let start = Instant::now();
    let upgraded = timeout(STEP, upgrade(&uri, &|_| {})).await.expect("a step ends");
    let failed = upgraded.expect_err("a shard is away");
    print_line(&format!(
        "a shard hangs: a server closed in {closed:.0?}, an upgrade ended in {:.0?}: {failed}",
        start.elapsed()
    ));
    shard.members[0].signal(Signal::Continue).await;
    upgrade(&uri, &|_| {}).await.unwrap();
    Mongo::open(&uri, Options::default()).await.unwrap().close().await;
}
