//! A short soak of two servers on three shards. `scripts/soak` runs long ones.

use std::sync::Arc;
use std::time::Duration;

use crate::server::program;
use crate::servers::{Layout, Sharded};
use crate::support::soak::{Calls, Plan, Store, run};

#[tokio::test(flavor = "multi_thread")]
async fn a_short_soak_on_three_shards_finds_nothing() {
    let plan = Plan {
        program: program(),
        length: Duration::from_secs(16),
        interval: Duration::from_secs(2),
        callers: 8,
        users: 10,
    };
    let cluster = Arc::new(Sharded::start(3, Layout::default()).await);
    let report = run(&plan, Store::Cluster(cluster, "soak".to_owned())).await;
    assert_eq!(report.faults, Vec::<String>::new());
    let Calls { look_ups, changes, events, .. } = report.total;
    assert!(look_ups > 0 && changes > 0 && events > 0, "{look_ups} {changes} {events}");
    assert!(!report.blows.is_empty(), "no server went down");
}
