//! A set of three members loses its primary under load: killed, frozen for some seconds, or asked to step down. Callers
//! go on with the same servers, whose reads are linearizable.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polynym::directory::Consistency;
use polynym::proto::v1;
use polynym::store::mongo::Options;
use tokio::time::sleep;

use super::audit::{State, no_transaction};
use super::caller::{Caller, Direct, Remote};
use super::ledger::Count;
use super::load::{Load, Plan};
use super::place::{PATIENCE, fresh, limit_transactions, long, open, prepare, tell};
use crate::calls::Client;
use crate::server::Server;
use crate::servers::{Layout, ReplicaSet, Signal};

/// What is done to the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blow {
    Kill,
    /// For so many seconds.
    Freeze(u64),
    /// Until calls are answered all the same.
    Hang,
    StepDown,
}

/// Shorter than it takes to find out that a server hangs.
const FROZEN: u64 = 5;
/// How many look-ups, and how many mutations, are answered before and after a blow.
const SOME: usize = 50;

impl Blow {
    /// Strikes, and waits until the set is whole again.
    async fn strike(self, set: &ReplicaSet, load: &Load) {
        let primary = set.primary().await;
        match self {
            Self::Kill => {
                primary.signal(Signal::Kill).await;
                set.primary().await;
                sleep(Duration::from_secs(1)).await;
                primary.restart().await;
                limit_transactions([primary]).await;
            }
            Self::Freeze(seconds) => {
                primary.signal(Signal::Stop).await;
                sleep(Duration::from_secs(seconds)).await;
                primary.signal(Signal::Continue).await;
            }
            Self::Hang => {
                primary.signal(Signal::Stop).await;
                // What was under way may still end.
                sleep(Duration::from_secs(1)).await;
                load.until_answered(SOME, Instant::now()).await;
                primary.signal(Signal::Continue).await;
            }
            Self::StepDown => set.step_down().await,
        }
        set.whole().await;
    }
}

/// A set of three, a server on it, and a store in this process.
struct Stage {
    set: ReplicaSet,
    name: String,
    server: Server,
    callers: Vec<Arc<dyn Caller>>,
}

impl Stage {
    async fn new() -> Self {
        let set = ReplicaSet::start(Layout { members: 3, ..Layout::default() }).await;
        limit_transactions(&set.members).await;
        let name = fresh();
        prepare(&set, &name).await;
        let uri = set.uri(&name, "");
        let store = open(&uri, Options::default(), true).await;
        let direct: Arc<dyn Caller> = Arc::new(Direct { store, consistency: Consistency::Linearizable });
        let server = tokio::task::spawn_blocking(move || Server::start(&["--store", &uri])).await.unwrap();
        let mut client = Client::connect(&server.url).await;
        client.hold_nothing().await;
        let remote = Remote { client, consistency: v1::Consistency::Linearizable, deadline: None };
        Self { set, name, server, callers: vec![direct, Arc::new(remote)] }
    }

    /// One blow under load, and what comes of it.
    async fn survive(&self, blow: Blow) -> Count {
        let plan = Plan { creates: false, ..Plan::default() };
        let before = State::read(&self.set.primary().await.database(&self.name).await).await;
        let load = match before.users.is_empty() {
            true => Load::start(plan, &self.callers).await,
            false => Load::resume(plan, &self.callers, before),
        };
        load.until_answered(SOME, Instant::now()).await;
        let since = Instant::now();
        blow.strike(&self.set, &load).await;
        load.until_answered(SOME, Instant::now()).await;
        let (ledger, before) = load.stop().await;
        let members: Vec<_> = self.set.members.iter().collect();
        no_transaction(&members).await;
        let after = State::read(&self.set.primary().await.database(&self.name).await).await;
        for caller in &self.callers {
            after.is_found(&**caller).await;
        }
        let ([reads, longest_read], [writes, longest_write]) =
            (<[_; 2]>::from(ledger.silence(true, since)), <[_; 2]>::from(ledger.silence(false, since)));
        tell(&format!(
            "{blow:?}: no look-up was answered for {reads:.1?}, no mutation for {writes:.1?}; the longest look-up took \
             {longest_read:.1?}, the longest mutation {longest_write:.1?}; {}; {:?}",
            ledger.count(),
            ledger.reasons()
        ));
        ledger.check(&before, &after);
        let (most, longest) = (Options::default().timeout, longest_read.max(longest_write));
        assert!(reads.max(writes) < PATIENCE, "nothing was answered for {reads:?} and {writes:?}");
        assert!(longest < PATIENCE, "a call of at most {most:?} took {longest:?}");
        ledger.count()
    }
}

async fn survive_all(time: Option<Duration>) {
    let stage = Stage::new().await;
    let (since, mut count, mut blows) = (Instant::now(), Count::default(), 0);
    loop {
        for blow in [Blow::Kill, Blow::Freeze(FROZEN), Blow::StepDown, Blow::Hang] {
            count += stage.survive(blow).await;
            blows += 1;
        }
        if time.is_none_or(|time| since.elapsed() > time) {
            break;
        }
    }
    tell(&format!("failover: {blows} blows to the primary of three under {count}; everything was as it was told"));
    stage.server.signal("TERM");
    assert!(stage.server.wait().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_without_its_primary_loses_nothing() {
    survive_all(None).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_failover() {
    survive_all(Some(long())).await;
}
