//! A set of three members loses its primary under load: killed, frozen for some seconds, or asked
//! to step down. Callers go on with the same servers, whose reads are linearizable. Where users are
//! merged, they are also looked up by their ids, which may be stale for as long as nobody took the
//! place of a primary that hangs.

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
use crate::place::{PATIENCE, fresh, limit_transactions, long, open, prepare, print_line};
use crate::server::Server;
use crate::servers::{Layout, ReplicaSet, Signal};

/// The fault of the primary.
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
/// For how long at most look-ups that may lag are stale, where nobody took the place of a primary
/// that hangs.
const STALE: Duration = Duration::from_secs(30);
/// The look-ups, and the mutations, that are answered before and after a fault.
const SOME: usize = 50;

impl Blow {
    /// For how long what a primary answers may be old: one that is frozen answers when it wakes up.
    const fn stale(self) -> Duration {
        match self {
            Self::Freeze(_) | Self::Hang => STALE,
            Self::Kill | Self::StepDown => Duration::ZERO,
        }
    }

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
                // Calls under way may still end.
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
            primary.database(&self.name).await.drop().await.unwrap();
            prepare(&self.set, &self.name).await;
        }
        let before = State::read(&primary.database(&self.name).await).await;
        match before.users.is_empty() {
            true => Load::start(self.plan, &self.callers).await,
            false => Load::resume(self.plan, &self.callers, before),
        }
    }

    /// One blow under load, and what comes of it.
    async fn survive(&self, blow: Blow) -> Count {
        let load = self.begin().await;
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
        let ([reads, longest_read], [writes, longest_write]) = (
            <[_; 2]>::from(ledger.silence(true, since)),
            <[_; 2]>::from(ledger.silence(false, since)),
        );
        print_line(&format!(
            "{blow:?}: no look-up was answered for {reads:.1?}, no mutation for {writes:.1?}; the \
             longest look-up took {longest_read:.1?}, the longest mutation {longest_write:.1?}; \
             {}; {:?}",
            ledger.count(),
            ledger.reasons()
        ));
        ledger.may_be_stale(blow.stale());
        ledger.check(&before, &after);
        let (most, longest) = (Options::default().timeout, longest_read.max(longest_write));
        assert!(reads.max(writes) < PATIENCE, "nothing was answered for {reads:?} and {writes:?}");
        assert!(longest < PATIENCE, "a call of at most {most:?} took {longest:?}");
        ledger.count()
    }
}

async fn survive_all(plan: Plan, blows: &[Blow], time: Option<Duration>) {
    let stage = Stage::new(plan).await;
    let (since, mut count, mut struck) = (Instant::now(), Count::default(), 0);
    loop {
        for blow in blows {
            count += stage.survive(*blow).await;
            struck += 1;
        }
        if time.is_none_or(|time| since.elapsed() > time) {
            break;
        }
    }
    let what = if plan.merges { "failover under merges" } else { "failover" };
    print_line(&format!(
        "{what}: {struck} blows to the primary of three under {count}; everything was as it was \
         reply"
    ));
    if let Some(server) = stage.server {
        server.signal("TERM");
        assert!(server.wait().success());
    }
}

const ALL: [Blow; 4] = [Blow::Kill, Blow::Freeze(FROZEN), Blow::StepDown, Blow::Hang];

#[tokio::test(flavor = "multi_thread")]
async fn a_set_without_its_primary_loses_nothing() {
    survive_all(PLAIN, &ALL, None).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_failover() {
    survive_all(PLAIN, &ALL, Some(long())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn merges_survive_the_loss_of_a_primary() {
    survive_all(MERGES, &ALL[..3], None).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_failover_of_merges() {
    survive_all(MERGES, &ALL, Some(long())).await;
}
