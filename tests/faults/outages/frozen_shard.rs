//! One shard of three hangs under 64 callers, of whom 16 mutate: look-ups and mutations on other
//! shards continue, the others fail in time, and health stays good.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use mongodb::bson::doc;
use polynym_directory::{Backend, Consistency, View};
use polynym_mongodb::Options;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::caller::{Call, Caller, Direct, Reply, key};
use crate::servers::{Layout, Sharded, Signal};
use crate::stores::{
    TIMEOUT, fresh, open, prepare_sharded, print_line, shard_of_user, shards_of_keys,
    shards_of_names,
};

const CALLERS: usize = 64;
/// The callers that mutate, and those of them that do not need the hanging shard.
const MUTATING: usize = 16;
const MUTATING_BESIDE: usize = 4;
const USERS: usize = 8;
/// Names per user.
const NAMES: usize = 64;
/// The hanging shard. The front end uses the first one for statements outside transactions.
const FROZEN: usize = 2;
/// The time limit of a call: mutations that need the shard reach it.
const CALL_TIMEOUT: Duration = Duration::from_secs(1);
/// Other work on the machine may spoil some rounds.
const ROUNDS: usize = 4;

/// The numbers of a run, and its demands on look-ups that do not need the shard.
#[derive(Clone, Copy)]
struct Run {
    /// The look-ups of one measurement, at least.
    look_ups: usize,
    /// The mutations that fail while the shard hangs: more than a pool has connections.
    failures: usize,
    /// The least share of the rate before.
    share: f64,
    /// The percentage of look-ups that takes less than `most`.
    percentage: usize,
    most: Duration,
}

/// Look-ups that waited for the shard would all take the time limit.
const SHORT: Run =
    Run { look_ups: 1_500, failures: 120, share: 0.1, percentage: 90, most: CALL_TIMEOUT };
/// About a minute, on an idle machine.
const LONG: Run = Run {
    look_ups: 6_000,
    failures: 480,
    share: 0.7,
    percentage: 99,
    most: Duration::from_millis(500),
};

struct Stage {
    cluster: Sharded,
    store: Backend,
    /// Names on the hanging shard.
    through: Vec<usize>,
    /// Other names, which are looked up.
    beside: Vec<usize>,
    /// Names that mutations unlink and link. The first ones do not need the hanging shard, and each
    /// is of another user: a mutation that hangs locks its user.
    changing: Vec<usize>,
}

/// The results of one measurement.
struct Measurement {
    /// Look-ups per second that did not need the shard.
    rate: f64,
    /// The times of these look-ups, sorted.
    took: Vec<Duration>,
    /// Mutations that did not need the shard: those that succeeded, and those that failed.
    mutations: usize,
    delayed: usize,
}

impl Measurement {
    /// The time that this percentage of look-ups did not exceed.
    fn quantile(&self, percentage: usize) -> Duration {
        self.took[self.took.len() * percentage / 100]
    }
}

/// The counts by which the callers of a measurement end together.
#[derive(Default)]
struct Counts {
    /// Look-ups that do not need the shard.
    look_ups: AtomicUsize,
    /// Mutations that do not need the shard, and succeeded.
    mutations: AtomicUsize,
    /// Mutations that do not need the shard, and failed.
    delayed: AtomicUsize,
    /// Mutations that need the shard, and failed.
    failures: AtomicUsize,
    is_over: AtomicBool,
}

impl Counts {
    /// Whether there is more to do: calls end once there were enough look-ups and failures.
    fn goes_on(&self, run: Run) -> bool {
        if self.look_ups.load(Relaxed) >= run.look_ups
            && self.failures.load(Relaxed) >= run.failures
        {
            self.is_over.store(true, Relaxed);
        }
        !self.is_over.load(Relaxed)
    }
}

impl Stage {
    async fn new() -> Self {
        let cluster = Sharded::start(3, Layout::default()).await;
        let name = fresh();
        // Each mutation needs its tenant, which is on the first shard of the database.
        let home = &cluster.shards[0].name;
        let database = doc! { "enableSharding": &name, "primaryShard": home };
        cluster.admin(database).await.unwrap();
        prepare_sharded(&cluster, &name).await;
        let shards = shards_of_names(&cluster, &name, NAMES).await;
        let options = Options { timeout: CALL_TIMEOUT, ..Options::default() };
        let store = open(&cluster.uri(&name), options, true).await;
        let caller = Direct { store: store.clone(), consistency: Consistency::Latest };
        for user in 0..USERS {
            let reply =
                caller.answer(&Call::Create(user, (user..NAMES).step_by(USERS).collect())).await;
            assert!(matches!(reply, Reply::Done(_)), "{reply:?}");
        }
        let needs = |name: &usize| shard_of_user(name % USERS) == FROZEN || shards[*name] == FROZEN;
        let (through, mut beside): (Vec<_>, Vec<_>) = (0..NAMES).partition(needs);
        // A mutation that unlinks a name records the end of the ownership too.
        let ended = shards_of_keys(&cluster, &format!("{name}.ended"), NAMES).await;
        let mut users = BTreeSet::new();
        let of_others = beside.iter().copied().filter(|name| ended[*name] != FROZEN);
        let of_others = of_others.filter(|name| users.insert(name % USERS));
        let mut changing: Vec<_> = of_others.take(MUTATING_BESIDE).collect();
        assert_eq!(changing.len(), MUTATING_BESIDE, "{beside:?}");
        beside.retain(|name| !changing.contains(name));
        let hanging = through.iter().filter(|name| shard_of_user(*name % USERS) == FROZEN);
        changing.extend(hanging.take(MUTATING - MUTATING_BESIDE));
        Self { cluster, store, through, beside, changing }
    }

    /// Calls until enough look-ups without the shard, and enough mutations with it that failed. Of
    /// the callers that look up, a third needs the shard.
    async fn measure(&self, run: Run) -> Measurement {
        let (counts, since) = (Arc::new(Counts::default()), Instant::now());
        let (mut others, mut measured) = (JoinSet::new(), JoinSet::new());
        for (n, name) in self.changing.iter().enumerate() {
            others.spawn(self.mutate(*name, n >= MUTATING_BESIDE, counts.clone()));
        }
        for n in MUTATING..CALLERS {
            let needs_shard = n % 3 == 0;
            let names = if needs_shard { &self.through } else { &self.beside };
            let callers = if needs_shard { &mut others } else { &mut measured };
            callers.spawn(self.look_up(names.clone(), n, !needs_shard, run, counts.clone()));
        }
        let mut took: Vec<_> = measured.join_all().await.concat();
        let rate = took.len() as f64 / since.elapsed().as_secs_f64();
        others.join_all().await;
        took.sort_unstable();
        let [mutations, delayed] =
            [&counts.mutations, &counts.delayed].map(|count| count.load(Relaxed));
        Measurement { rate, took, mutations, delayed }
    }

    /// Looks names up. Returns the time of each look-up.
    fn look_up(
        &self,
        names: Vec<usize>,
        first: usize,
        is_measured: bool,
        run: Run,
        counts: Arc<Counts>,
    ) -> impl Future<Output = Vec<Duration>> + use<> {
        let lookups = self.store.lookups.clone();
        async move {
            let mut took = Vec::new();
            for n in (first..).take_while(|_| counts.goes_on(run)) {
                let (since, keys) = (Instant::now(), [key(names[n % names.len()])]);
                let found =
                    lookups.resolve(&keys, Consistency::Latest, View::Full, Duration::ZERO).await;
                if is_measured {
                    // One that fails has taken the time limit.
                    let owner = found.ok().and_then(|found| found.found[0].as_ref().ok().cloned());
                    assert!(owner.is_none_or(|owner| owner.is_some()));
                    took.push(since.elapsed());
                    counts.look_ups.fetch_add(1, Relaxed);
                }
            }
            took
        }
    }

    /// Unlinks and links a name.
    fn mutate(
        &self,
        name: usize,
        needs_shard: bool,
        counts: Arc<Counts>,
    ) -> impl Future<Output = Vec<Duration>> + use<> {
        let caller = Direct { store: self.store.clone(), consistency: Consistency::Latest };
        async move {
            let mut is_linked = true;
            while !counts.is_over.load(Relaxed) {
                let user = name % USERS;
                let call =
                    if is_linked { Call::Unlink(user, name) } else { Call::Link(user, name) };
                let reply = caller.call(&call, None).await;
                is_linked = match reply {
                    // The name is as an earlier call of unknown outcome left it.
                    Reply::Done(_) | Reply::NotOwned | Reply::Taken(..) => !is_linked,
                    _ => is_linked,
                };
                match (needs_shard, reply.is_answer()) {
                    (true, false) => drop(counts.failures.fetch_add(1, Relaxed)),
                    (false, true) => drop(counts.mutations.fetch_add(1, Relaxed)),
                    (false, false) => drop(counts.delayed.fetch_add(1, Relaxed)),
                    (true, true) => {}
                }
            }
            // The next measurement looks the name up.
            if !is_linked && !needs_shard {
                caller.answer(&Call::Link(name % USERS, name)).await;
            }
            Vec::new()
        }
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

async fn a_shard_hangs(run: Run) {
    let stage = Stage::new().await;
    let healthy = Run { failures: 0, ..run };
    stage.measure(healthy).await;
    for round in 1.. {
        let before = stage.measure(healthy).await;
        stage.freeze(Signal::Stop).await;
        let during = stage.measure(run).await;
        let health = stage.store.reads.check().await;
        stage.freeze(Signal::Continue).await;
        stage.whole().await;
        let share = during.rate / before.rate;
        print_line(&format!(
            "one of three shards hangs, 64 callers, 16 of them mutate: {:.0} look-ups a second \
             that do not need it, {:.0} before ({share:.2}), p90 {:.0?}, p99 {:.0?}, before \
             {:.0?}; {} mutations that do not need it succeeded, {} failed",
            during.rate,
            before.rate,
            during.quantile(90),
            during.quantile(99),
            before.quantile(99),
            during.mutations,
            during.delayed
        ));
        // With all connections taken, nearly all of them would fail.
        let go_on = health.is_ok()
            && during.mutations >= run.failures / 4
            && during.delayed < during.mutations;
        if go_on && share >= run.share && during.quantile(run.percentage) < run.most {
            return;
        }
        assert!(round < ROUNDS, "calls on other shards are delayed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_shard_delays_only_its_own_calls() {
    a_shard_hangs(SHORT).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_a_hanging_shard_delays_only_its_own_calls() {
    a_shard_hangs(LONG).await;
}
