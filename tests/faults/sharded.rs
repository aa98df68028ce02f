//! Users on several shards: histories of merges, and reads while one shard has applied a commit and
//! another has not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mongodb::bson::Bson;
use polynym_directory::Consistency;
use polynym_mongodb::Options;
use tokio::time::sleep;

use crate::audit::{State, no_transaction};
use crate::caller::{Call, Caller, Direct, Lagging, Reply};
use crate::group::Group;
use crate::ledger::Count;
use crate::load::{Load, Plan};
use crate::stores::{
    LIFETIME, cluster, fresh, hold_next_commit, long, open, points, prepare_sharded, print_line,
};

/// Five groups, and the callers of three. The first two have users on two shards.
const MERGES: Plan = Plan {
    callers: 15,
    names: 5 * Group::NAMES,
    users: 5 * Group::USERS,
    gets: true,
    creates: false,
    merges: true,
    pause: Duration::from_millis(2),
};

/// The delay of a commit on a shard: less than a transaction may wait for it.
const HELD: Duration = Duration::from_millis(LIFETIME.as_millis() as u64 / 2);

/// Merges and unmerges over three shards, until this number of calls. Linearizable look-ups are
/// linearizable; others show at least the acknowledged state.
async fn merge_on_a_cluster(calls: usize, coalesce: bool) -> Count {
    let (cluster, _turn) = cluster().await;
    let name = fresh();
    prepare_sharded(cluster, &name).await;
    let mut to: Vec<Arc<dyn Caller>> = Vec::new();
    for consistency in [Consistency::Linearizable, Consistency::Linearizable, Consistency::Latest] {
        let store = open(&cluster.uri(&name), Options::default(), coalesce).await;
        to.push(Arc::new(Lagging(Direct { store, consistency })));
    }
    let since = Instant::now();
    let load = Load::start(MERGES, &to).await;
    load.until_some(calls, since, |_| true).await;
    let (ledger, before) = load.stop().await;
    let shards: Vec<_> = cluster.shards.iter().map(|shard| &shard.members[0]).collect();
    no_transaction(&shards).await;
    let database = cluster.client().await.database(&name);
    let after = State::read(&database).await;
    after.is_found(&*to[0]).await;
    let count = ledger.count();
    print_line(&format!(
        "merges on a cluster, look-ups together: {coalesce}: {count}; {:?}",
        ledger.reasons()
    ));
    ledger.check(&before, &after);
    database.drop().await.unwrap();
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn merges_on_a_cluster_are_linearizable() {
    merge_on_a_cluster(800, true).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_merges_on_a_cluster() {
    let (since, mut count) = (Instant::now(), Count::default());
    while since.elapsed() < long() {
        for coalesce in [true, false] {
            count += merge_on_a_cluster(6_000, coalesce).await;
        }
    }
    print_line(&format!("merges on a cluster: {count}; every answer was right"));
}

/// The shard of the request coordinates the commit; that of the secondary applies it first, that of
/// the primary late.
#[tokio::test(flavor = "multi_thread")]
async fn a_merge_committed_on_one_shard_is_seen_whole() {
    let (cluster, _turn) = cluster().await;
    let name = fresh();
    prepare_sharded(cluster, &name).await;
    for start in [vec![Bson::MinKey], points("requests").to_vec()].concat() {
        cluster.move_chunk(&format!("{name}.requests"), start, "shard2").await.unwrap();
    }
    let store = open(&cluster.uri(&name), Options::default(), false).await;
    let caller = Arc::new(Direct { store, consistency: Consistency::Latest });
    let (secondary, primary) = (0, 3);
    for call in [Call::Create(secondary, vec![0]), Call::Create(primary, vec![16])] {
        assert!(matches!(caller.call(&call, None).await, Reply::Done(_)));
    }
    hold_next_commit(&cluster.shards[1].members[0], HELD).await;
    let merge = tokio::spawn({
        let caller = caller.clone();
        async move { caller.call(&Call::Merge(primary, secondary), Some("merge")).await }
    });
    let (mut before, since) = (0, Instant::now());
    loop {
        match caller.call(&Call::Get(secondary), None).await {
            Reply::User(Some(names)) => assert!(names.has(0), "the secondary has lost its name"),
            Reply::Part(into, names) => {
                assert_eq!(into, primary);
                assert!(
                    names.has(0) && names.has(16),
                    "the secondary leads to one without its name: {names:?}"
                );
                break;
            }
            other => panic!("{other:?}"),
        }
        before += 1;
        assert!(since.elapsed() < Duration::from_secs(60), "the merge does not show");
        sleep(Duration::from_millis(5)).await;
    }
    let shown = since.elapsed();
    assert!(matches!(merge.await.unwrap(), Reply::Done(_)));
    assert!(since.elapsed() >= HELD, "the commit was not held up");
    print_line(&format!("a merge showed after {shown:.1?} and {before} look-ups, as a whole"));
    let database = cluster.client().await.database(&name);
    State::read(&database).await;
    database.drop().await.unwrap();
}
