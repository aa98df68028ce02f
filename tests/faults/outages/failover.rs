//! A set of three members loses its primary under load: killed, frozen, or asked to step down.
//! Callers keep their servers, whose reads are linearizable. Merged users are also looked up by id,
//! which may be stale until another primary is elected.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polynym_directory::Consistency;
use polynym_mongodb::Options;
use polynym_proto::v1;
use tokio::time::sleep;

use crate::audit::{State, no_transaction};
use crate::caller::{Caller, Direct, Lagging, Remote};
use crate::calls::Client;
use crate::group::Group;
use crate::ledger::Count;
use crate::load::{Load, Plan};
use crate::server::Server;
use crate::servers::{Layout, ReplicaSet, Signal, wipe};
use crate::stores::{TIMEOUT, fresh, limit_transactions, long, open, prepare, print_line};

/// The fault of the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disruption {
    Kill,
    /// For this number of seconds.
    Freeze(u64),
    /// Until calls are answered again.
    Hang,
    StepDown,
}

/// Shorter than the detection of a hanging server.
const FROZEN: u64 = 5;
/// The maximum staleness of lagging look-ups while no other primary is elected.
const STALE: Duration = Duration::from_secs(30);
/// The look-ups and mutations answered before and after a fault.
const SOME: usize = 50;

impl Disruption {
    /// The maximum age of a late answer: a frozen primary answers when it resumes.
    const fn stale(self) -> Duration {
        match self {
            Self::Freeze(_) | Self::Hang => STALE,
            Self::Kill | Self::StepDown => Duration::ZERO,
        }
    }

    /// Causes a disruption and waits for the recovery of the set.
    async fn disrupt(self, set: &ReplicaSet, load: &Load) {
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
                // Calls in progress may still end.
                sleep(Duration::from_secs(1)).await;
                load.until_answered(SOME, Instant::now()).await;
                primary.signal(Signal::Continue).await;
            }
            Self::StepDown => set.step_down().await,
        }
        set.whole().await;
    }
}

/// The calls on single users, and those on groups of them.
const PLAIN: Plan = Plan { creates: false, ..Plan::DEFAULT };
const MERGES: Plan =
    Plan { names: 5 * Group::NAMES, users: 5 * Group::USERS, gets: true, merges: true, ..PLAIN };

/// A set of three, and stores on it: for plain calls, one in this process and one behind a server.
struct Stage {
    set: ReplicaSet,
    name: String,
    plan: Plan,
    server: Option<Server>,
    callers: Vec<Arc<dyn Caller>>,
}

impl Stage {
    async fn new(plan: Plan) -> Self {
        let set = ReplicaSet::start(Layout { members: 3, ..Layout::default() }).await;
        limit_transactions(&set.members).await;
        let name = fresh();
        prepare(&set, &name).await;
        let uri = set.uri(&name, "");
        let mut callers: Vec<Arc<dyn Caller>> = Vec::new();
        for coalesce in [true, false] {
            let store = open(&uri, Options::default(), coalesce).await;
            callers
                .push(Arc::new(Lagging(Direct { store, consistency: Consistency::Linearizable })));
        }
        let mut server = None;
        if !plan.merges {
            let started = tokio::task::spawn_blocking(move || Server::start(&["--store", &uri]))
                .await
                .unwrap();
            let mut client = Client::connect(&started.url).await;
            client.hold_nothing().await;
            callers[1] = Arc::new(Remote {
                client,
                consistency: v1::Consistency::Linearizable,
                deadline: None,
            });
            server = Some(started);
        }
        Self { set, name, plan, server, callers }
    }

    /// The state of the database before a fault. Groups have a history from their beginning.
    async fn begin(&self) -> Load {
        let primary = self.set.primary().await;
        if self.plan.merges {
            wipe(&primary.database(&self.name).await).await;
        }
        let before = State::read(&primary.database(&self.name).await).await;
        match before.users.is_empty() {
            true => Load::start(self.plan, &self.callers).await,
            false => Load::resume(self.plan, &self.callers, before),
        }
    }

    /// Causes one disruption under load and checks the results.
    async fn survive(&self, disruption: Disruption) -> Count {
        let load = self.begin().await;
        load.until_answered(SOME, Instant::now()).await;
        let since = Instant::now();
        disruption.disrupt(&self.set, &load).await;
        load.until_answered(SOME, Instant::now()).await;
        let (ledger, before) = load.stop().await;
        let members: Vec<_> = self.set.members.iter().collect();
        no_transaction(&members).await;
        let after = State::read(&self.set.primary().await.database(&self.name).await).await;
        for caller in &self.callers {
            after.is_found(&**caller).await;
        }
        let ([reads, longest_read], [writes, longest_write]) = (
            <[_; 2]>::from(ledger.silence(true, since)),
            <[_; 2]>::from(ledger.silence(false, since)),
        );
        print_line(&format!(
            "{disruption:?}: no look-up was answered for {reads:.1?}, no mutation for \
             {writes:.1?}; the longest look-up took {longest_read:.1?}, the longest mutation \
             {longest_write:.1?}; {}; {:?}",
            ledger.count(),
            ledger.reasons()
        ));
        ledger.may_be_stale(disruption.stale());
        ledger.check(&before, &after);
        let (most, longest) = (Options::default().timeout, longest_read.max(longest_write));
        assert!(reads.max(writes) < TIMEOUT, "nothing was answered for {reads:?} and {writes:?}");
        assert!(longest < TIMEOUT, "a call of at most {most:?} took {longest:?}");
        ledger.count()
    }
}

async fn survive_all(plan: Plan, disruptions: &[Disruption], time: Option<Duration>) {
    let stage = Stage::new(plan).await;
    let (since, mut count, mut struck) = (Instant::now(), Count::default(), 0);
    loop {
        for disruption in disruptions {
            count += stage.survive(*disruption).await;
            struck += 1;
        }
        if time.is_none_or(|time| since.elapsed() > time) {
            break;
        }
    }
    let what = if plan.merges { "failover under merges" } else { "failover" };
    print_line(&format!(
        "{what}: {struck} disruptions of the primary of three under {count}; all agreed with the \
         replies"
    ));
    if let Some(server) = stage.server {
        server.signal("TERM");
        assert!(server.wait().success());
    }
}

const ALL: [Disruption; 4] =
    [Disruption::Kill, Disruption::Freeze(FROZEN), Disruption::StepDown, Disruption::Hang];

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_loses_nothing() {
    survive_all(PLAIN, &ALL, None).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_failover() {
    survive_all(PLAIN, &ALL, Some(long())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn merges_survive_failovers() {
    survive_all(MERGES, &ALL[..3], None).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_failover_of_merges() {
    survive_all(MERGES, &ALL, Some(long())).await;
}
