//! One shard of three hangs under 64 callers with coalesced look-ups: look-ups on other shards
//! continue, and the others fail in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use polynym_directory::{Backend, Consistency, View};
use polynym_mongodb::Options;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::caller::{Call, Caller, Direct, Reply, key};
use crate::servers::{Layout, Sharded, Signal};
use crate::stores::{
    TIMEOUT, fresh, open, prepare_sharded, print_line, shard_of_user, shards_of_names,
};

const CALLERS: usize = 64;
const USERS: usize = 8;
/// Names per user.
const NAMES: usize = 64;
/// The hanging shard. The front end uses the first one for statements outside transactions.
const FROZEN: usize = 2;
/// The look-ups of one measurement.
const LOOK_UPS: usize = 6_000;
/// Other work on the machine may spoil some rounds.
const ROUNDS: usize = 6;

struct Stage {
    cluster: Sharded,
    store: Backend,
    /// Names on the hanging shard, and others.
    through: Vec<usize>,
    beside: Vec<usize>,
}

/// The results of one measurement.
struct Measurement {
    /// Look-ups per second that did not need the shard.
    rate: f64,
    p99: Duration,
}

impl Stage {
    async fn new() -> Self {
        let cluster = Sharded::start(3, Layout::default()).await;
        let name = fresh();
        prepare_sharded(&cluster, &name).await;
        let shards = shards_of_names(&cluster, &name, NAMES).await;
        let store = open(&cluster.uri(&name), Options::default(), true).await;
        let caller = Direct { store: store.clone(), consistency: Consistency::Latest };
        for user in 0..USERS {
            let reply = caller
                .call(&Call::Create(user, (user..NAMES).step_by(USERS).collect()), None)
                .await;
            assert!(matches!(reply, Reply::Done(_)), "{reply:?}");
        }
        let needs = |name: &usize| shard_of_user(name % USERS) == FROZEN || shards[*name] == FROZEN;
        let (through, beside) = (0..NAMES).partition(needs);
        Self { cluster, store, through, beside }
    }

    /// Looks users up until this number of look-ups without the shard. Two thirds of the callers
    /// never need it, one third always.
    async fn measure(&self) -> Measurement {
        let (left, stop) = (Arc::new(AtomicUsize::new(LOOK_UPS)), Arc::new(AtomicBool::new(false)));
        let since = Instant::now();
        let mut others = JoinSet::new();
        for n in 0..CALLERS / 3 {
            let (store, stop, names) = (self.store.clone(), stop.clone(), self.through.clone());
            others.spawn(async move {
                for n in (n..).take_while(|_| !stop.load(Relaxed)) {
                    let _ = store
                        .lookups
                        .resolve(
                            &[key(names[n % names.len()])],
                            Consistency::Latest,
                            View::Full,
                            Duration::ZERO,
                        )
                        .await;
                }
            });
        }
        let mut measured = JoinSet::new();
        for n in CALLERS / 3..CALLERS {
            let (store, left, names) = (self.store.clone(), left.clone(), self.beside.clone());
            measured.spawn(async move {
                let mut took = Vec::new();
                let is_left =
                    || left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
                for n in (n..).take_while(|_| is_left()) {
                    let since = Instant::now();
                    let found = store
                        .lookups
                        .resolve(
                            &[key(names[n % names.len()])],
                            Consistency::Latest,
                            View::Full,
                            Duration::ZERO,
                        )
                        .await
                        .unwrap();
                    assert!(found.found[0].as_ref().unwrap().is_some());
                    took.push(since.elapsed());
                }
                took
            });
        }
        let mut took: Vec<_> = measured.join_all().await.concat();
        let rate = took.len() as f64 / since.elapsed().as_secs_f64();
        stop.store(true, Relaxed);
        others.abort_all();
        took.sort_unstable();
        Measurement { rate, p99: took[took.len() * 99 / 100] }
    }

    async fn freeze(&self, signal: Signal) {
        self.cluster.shards[FROZEN].members[0].signal(signal).await;
    }

    /// Waits until the hanging shard answers again.
    async fn whole(&self) {
        let since = Instant::now();
        while self
            .store
            .lookups
            .resolve(&[key(self.through[0])], Consistency::Latest, View::Full, Duration::ZERO)
            .await
            .is_err()
        {
            assert!(since.elapsed() < TIMEOUT, "the shard does not recover");
            sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_shard_delays_only_its_own_look_ups() {
    let stage = Stage::new().await;
    stage.measure().await;
    for round in 1.. {
        let before = stage.measure().await;
        stage.freeze(Signal::Stop).await;
        let during = stage.measure().await;
        stage.freeze(Signal::Continue).await;
        stage.whole().await;
        let share = during.rate / before.rate;
        print_line(&format!(
            "one of three shards hangs, 64 callers: {:.0} look-ups a second that do not need it, \
             {:.0} before ({share:.2}), p99 {:.0?}, {:.0?} before",
            during.rate, before.rate, during.p99, before.p99
        ));
        if share >= 0.7 && during.p99 < Duration::from_millis(500) {
            return;
        }
        assert!(round < ROUNDS, "look-ups on other shards are delayed");
    }
}
