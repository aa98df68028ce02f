//! Health and metrics of a server while shards hang one after the other.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use polynym_mongodb::PARTLY_UNREACHABLE;
use tokio::time::sleep;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::scrape::{free_address, metrics, page};
use crate::server::Server;
use crate::servers::{Layout, Sharded, Signal};
use crate::stores::{TIMEOUT, fresh, prepare_sharded};

/// The time in which `/readyz` answers.
const READY_TIMEOUT: Duration = Duration::from_millis(500);
const ATTEMPTS: usize = 5;

/// A server on a cluster of three shards.
struct Stage {
    cluster: Sharded,
    server: Server,
    metrics: SocketAddr,
}

impl Stage {
    async fn new() -> Self {
        let cluster = Sharded::start(3, Layout::default()).await;
        let name = fresh();
        prepare_sharded(&cluster, &name).await;
        let metrics = free_address();
        let uri = cluster.uri(&name);
        let server = Server::start(&["--store", &uri, "--metrics-listen", &metrics.to_string()]);
        Self { cluster, server, metrics }
    }

    async fn signal(&self, shards: impl IntoIterator<Item = usize>, signal: Signal) {
        for shard in shards {
            self.cluster.shards[shard].members[0].signal(signal).await;
        }
    }

    /// Waits until the server reports this health and this state of the store.
    async fn until(&self, is_serving: bool, is_degraded: bool) {
        let channel =
            Channel::from_shared(self.server.url.clone()).unwrap().connect().await.unwrap();
        let mut health = HealthClient::new(channel);
        let since = Instant::now();
        loop {
            let answer = health.check(HealthCheckRequest::default()).await.unwrap().into_inner();
            let reply = (answer.status() == ServingStatus::Serving, self.is_degraded());
            let is_ready = self.readiness() == 200;
            if reply.0 == is_serving
                && is_ready == is_serving
                && (reply.1 == is_degraded || !is_serving)
            {
                return;
            }
            assert!(since.elapsed() < TIMEOUT, "serving, and degraded: {reply:?}; {is_ready}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    fn is_degraded(&self) -> bool {
        metrics(self.metrics).contains(&format!("{} 1\n", PARTLY_UNREACHABLE.0))
    }

    /// Asserts that the page is as fast as ever, whatever the store does, in one of a few attempts:
    /// others may have the processors. Returns its status.
    fn readiness(&self) -> u16 {
        for _ in 0..ATTEMPTS {
            let begun = Instant::now();
            let (status, _) = page(self.metrics, "/readyz");
            if begun.elapsed() < READY_TIMEOUT {
                return status;
            }
        }
        panic!("/readyz does not answer within {READY_TIMEOUT:?}");
    }
}

/// The first shard hangs last, because the front end uses it for statements outside transactions.
#[tokio::test(flavor = "multi_thread")]
async fn health_reports_missing_shards_and_serves_with_one() {
    let stage = Stage::new().await;
    stage.until(true, false).await;
    for shard in [2, 1] {
        stage.signal([shard], Signal::Stop).await;
        stage.until(true, true).await;
    }
    stage.signal([0], Signal::Stop).await;
    stage.until(false, true).await;
    stage.signal(0..3, Signal::Continue).await;
    stage.until(true, false).await;
}
