//! A bad network between store and MongoDB: delayed messages, lost messages with their connections,
//! and cuts. The set has one member, so that no look-up is stale.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polynym_directory::Consistency;
use polynym_mongodb::Options;
use tokio::time::sleep;

use crate::audit::{State, no_transaction};
use crate::caller::{Caller, Direct};
use crate::ledger::Count;
use crate::load::{Load, Plan};
use crate::servers::{Line, NetworkFaults, Proxy};
use crate::stores::{OwnSet, TIMEOUT, fresh, long, open, prepare, print_line};

/// Runs a load on a bad network for some time.
async fn run_load(time: Duration, coalesce: bool) -> Count {
    let set = OwnSet::new().await;
    let (proxy, name) = (Proxy::start(set.members[0].address()).await, fresh());
    let database = set.members[0].database(&name).await;
    prepare(&set, &name).await;
    let uri = format!("mongodb://{}/{name}?directConnection=true", proxy.address());
    let store = open(&uri, Options::default(), coalesce).await;
    let caller: Arc<dyn Caller> = Arc::new(Direct { store, consistency: Consistency::Latest });
    let plan = Plan { gets: true, ..Plan::default() };
    let load = Load::start(plan, std::slice::from_ref(&caller)).await;
    let since = Instant::now();
    proxy.set_faults(NetworkFaults::BAD);
    sleep(time).await;
    proxy.set_faults(NetworkFaults::default());
    let good = Instant::now();
    load.until_answered(100, good).await;
    let (ledger, before) = load.stop().await;
    let waited = no_transaction(&[&set.members[0]]).await;
    let after = State::read(&database).await;
    after.is_found(&*caller).await;
    let ((reads, _), (writes, longest)) =
        (ledger.silence(true, since), ledger.silence(false, since));
    let ((again, _), (writes_again, _)) = (ledger.silence(true, good), ledger.silence(false, good));
    print_line(&format!(
        "bad network for {time:?}: no look-up was answered for {reads:.1?}, no mutation for \
         {writes:.1?}, the longest of which took {longest:.1?}; in good weather again after \
         {again:.1?} and {writes_again:.1?}, and no transaction open {waited:.1?} after the end; \
         {}; {:?}",
        ledger.count(),
        ledger.reasons()
    ));
    ledger.check(&before, &after);
    database.drop().await.unwrap();
    ledger.count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_network_corrupts_nothing() {
    run_load(Duration::from_secs(8), true).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_network() {
    let (since, mut count) = (Instant::now(), Count::default());
    while since.elapsed() < long() {
        for coalesce in [true, false] {
            count += run_load(Duration::from_secs(20), coalesce).await;
        }
    }
    print_line(&format!("bad network: {count}; every reply was right"));
}

/// Messages are neither delivered nor refused: no call may wait without bound, nor block others.
#[tokio::test(flavor = "multi_thread")]
async fn calls_recover_from_a_stalled_network() {
    let set = OwnSet::new().await;
    let (proxy, name) = (Proxy::start(set.members[0].address()).await, fresh());
    let database = set.members[0].database(&name).await;
    prepare(&set, &name).await;
    let uri = format!("mongodb://{}/{name}?directConnection=true", proxy.address());
    // Long enough for a busy machine to serve all callers.
    let timeout = Duration::from_secs(6);
    let stall = timeout + Duration::from_secs(1);
    let store = open(&uri, Options { timeout, ..Options::default() }, true).await;
    let caller: Arc<dyn Caller> = Arc::new(Direct { store, consistency: Consistency::Latest });
    let plan = Plan { callers: 300, pause: Duration::from_millis(50), ..Plan::default() };
    let load = Load::start(plan, std::slice::from_ref(&caller)).await;
    load.until_answered(100, Instant::now()).await;
    proxy.set_line(Line::Stalled);
    sleep(stall).await;
    proxy.set_line(Line::Up);
    let good = Instant::now();
    load.until_answered(300, good).await;
    let (ledger, before) = load.stop().await;
    no_transaction(&[&set.members[0]]).await;
    let after = State::read(&database).await;
    let store = open(&set.uri(&name, ""), Options::default(), true).await;
    after.is_found(&Direct { store, consistency: Consistency::Latest }).await;
    let ((reads, longest_read), (writes, longest)) =
        (ledger.silence(true, good), ledger.silence(false, good));
    print_line(&format!(
        "stalled network for {stall:?}: look-ups came back after {reads:.1?}, mutations after \
         {writes:.1?}; the longest took {longest_read:.1?} and {longest:.1?}; {}; {:?}",
        ledger.count(),
        ledger.reasons()
    ));
    ledger.check(&before, &after);
    // A sent commit is awaited for the time limit and one more second.
    assert!(longest_read.max(longest) < TIMEOUT, "a call of at most {timeout:?} took {longest:?}");
    assert!(reads.max(writes) < TIMEOUT, "calls take too long");
    database.drop().await.unwrap();
}
