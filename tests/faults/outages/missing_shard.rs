//! One shard or the config server is killed or frozen under load. Calls that do not need it
//! succeed; after its return all do, and every reply was right.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polynym_directory::Consistency;
use polynym_mongodb::Options;

use crate::audit::{State, no_transaction};
use crate::caller::{Call, Caller, Direct, Reply};
use crate::ledger::{Count, Entry};
use crate::load::{Load, Plan};
use crate::servers::{Layout, ReplicaSet, Sharded, Signal};
use crate::stores::{
    fresh, limit_transactions, long, open, prepare_sharded, print_line, shard_of_user,
    shards_of_names,
};

const PLAN: Plan = Plan { callers: 12, creates: false, gets: true, ..Plan::DEFAULT };
/// The time limit of a call: callers that need an unreachable server wait for that long.
const TIMEOUT: Duration = Duration::from_secs(4);
/// The look-ups and mutations answered at each stage.
const ANSWERED: usize = 20;

/// The unreachable server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Away {
    /// The last shard. The front end uses the first one for statements outside transactions.
    Shard,
    Config,
}

/// The fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outage {
    Killed,
    Frozen,
}

struct Stage {
    cluster: Sharded,
    name: String,
    /// The shard of each name.
    shards: Vec<usize>,
    callers: Vec<Arc<dyn Caller>>,
}

impl Stage {
    async fn new() -> Self {
        let cluster = Sharded::start(3, Layout::default()).await;
        limit_transactions(cluster.shards.iter().map(|shard| &shard.members[0])).await;
        let name = fresh();
        prepare_sharded(&cluster, &name).await;
        let shards = shards_of_names(&cluster, &name, PLAN.names).await;
        let mut callers: Vec<Arc<dyn Caller>> = Vec::new();
        for consistency in [Consistency::Latest, Consistency::Linearizable] {
            let store = open(
                &cluster.uri(&name),
                Options { timeout: TIMEOUT, ..Options::default() },
                false,
            )
            .await;
            callers.push(Arc::new(Direct { store, consistency }));
        }
        Self { cluster, name, shards, callers }
    }

    /// Whether a call succeeded without a shard. It may have needed the shard of its request too.
    fn is_unaffected(&self, entry: &Entry, away: Away) -> bool {
        let shard = (away == Away::Shard).then_some(self.cluster.shards.len() - 1);
        entry.reply.is_answer() && shard.is_none_or(|shard| !self.needs(entry, shard))
    }

    /// Whether a call needed data of a shard.
    fn needs(&self, entry: &Entry, shard: usize) -> bool {
        let (users, names) = match (&entry.call, &entry.reply) {
            (Call::Resolve(name), Reply::Found(user, _)) => (vec![*user], vec![*name]),
            (Call::Resolve(name), _) => (Vec::new(), vec![*name]),
            (Call::Get(user), _) => (vec![*user], Vec::new()),
            (Call::Link(user, name) | Call::Unlink(user, name), _) => (vec![*user], vec![*name]),
            (Call::Replace(user, old, new), _) => (vec![*user], vec![*old, *new]),
            other => unreachable!("{other:?}"),
        };
        users.into_iter().any(|user| shard_of_user(user) == shard)
            || names.into_iter().any(|name| self.shards[name] == shard)
    }

    /// Takes a server away under load, and restores it.
    async fn survive(&self, away: Away, outage: Outage) -> Count {
        let before = State::read(&self.cluster.client().await.database(&self.name)).await;
        let load = match before.users.is_empty() {
            true => Load::start(PLAN, &self.callers).await,
            false => Load::resume(PLAN, &self.callers, before),
        };
        let since = Instant::now();
        load.until_some(2 * ANSWERED, since, |entry| entry.reply.is_answer()).await;
        let set = match away {
            Away::Shard => &self.cluster.shards[2],
            Away::Config => &self.cluster.config,
        };
        let gone = Instant::now();
        set.members[0]
            .signal(if outage == Outage::Killed { Signal::Kill } else { Signal::Stop })
            .await;
        for reads in [true, false] {
            load.until_some(ANSWERED, gone, |entry| {
                entry.call.is_read() == reads && self.is_unaffected(entry, away)
            })
            .await;
        }
        let went_on = gone.elapsed();
        restore(set, outage).await;
        let back = Instant::now();
        for reads in [true, false] {
            load.until_some(ANSWERED, back, |entry| {
                entry.call.is_read() == reads && entry.reply.is_answer() && self.needs(entry, 2)
            })
            .await;
        }
        let all_went_on = back.elapsed();
        let (ledger, before) = load.stop().await;
        let shards: Vec<_> = self.cluster.shards.iter().map(|shard| &shard.members[0]).collect();
        no_transaction(&shards).await;
        let after = State::read(&self.cluster.client().await.database(&self.name)).await;
        for caller in &self.callers {
            after.is_found(&**caller).await;
        }
        print_line(&format!(
            "{away:?} {outage:?}: {ANSWERED} look-ups and mutations that did not need it were \
             answered in {went_on:.1?}; when it was back, as many that did in {all_went_on:.1?}; \
             {}; {:?}",
            ledger.count(),
            ledger.reasons()
        ));
        ledger.check(&before, &after);
        ledger.count()
    }
}

async fn restore(set: &ReplicaSet, outage: Outage) {
    if outage == Outage::Frozen {
        return set.members[0].signal(Signal::Continue).await;
    }
    set.members[0].restart().await;
    set.whole().await;
    limit_transactions(&set.members).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_need_no_missing_shard_succeed() {
    let stage = Stage::new().await;
    for (away, outage) in [
        (Away::Shard, Outage::Killed),
        (Away::Shard, Outage::Frozen),
        (Away::Config, Outage::Frozen),
    ] {
        stage.survive(away, outage).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_absent() {
    let stage = Stage::new().await;
    let (since, mut count, mut times) = (Instant::now(), Count::default(), 0);
    while since.elapsed() < long() {
        for away in [Away::Shard, Away::Config] {
            for outage in [Outage::Killed, Outage::Frozen] {
                count += stage.survive(away, outage).await;
                times += 1;
            }
        }
    }
    print_line(&format!(
        "a shard or the config server away: {times} times, under {count}; everything was as it was \
         reply"
    ));
}
