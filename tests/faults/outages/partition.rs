//! A primary is isolated from the other members but reachable by one server, while the others elect
//! another: through that server, LATEST look-ups are stale for a bounded time, linearizable ones
//! never, and no acknowledged mutation is lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mongodb::bson::{Document, doc};
use polynym_directory::Consistency;
use polynym_mongodb::Options;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::audit::{State, no_transaction};
use crate::caller::{Caller, Direct, Lagging};
use crate::ledger::{Count, Entry};
use crate::load::{Load, Plan};
use crate::servers::{Layout, Origin, Process, ReplicaSet};
use crate::stores::{TIMEOUT, fresh, limit_transactions, long, open, prepare, print_line};

/// The time for which a primary without a majority stays primary.
const ELECTION: Duration = Duration::from_secs(4);
/// The maximum staleness of its look-ups. An overloaded machine is slow to step down.
const STALE: Duration = Duration::from_secs(60);
const OPERATION_TIMEOUT: Duration = Duration::from_secs(2);
/// The application name of the server that stays with the old primary.
const CUT_OFF: &str = "cut-off";
/// The look-ups and mutations at each stage.
const ANSWERED: usize = 40;
const PLAN: Plan = Plan { creates: false, gets: true, ..Plan::DEFAULT };

struct Stage {
    set: Arc<ReplicaSet>,
    name: String,
    /// The callers of the isolated server: LATEST, and linearizable; then those of the other
    /// server.
    callers: Vec<Arc<dyn Caller>>,
}

/// The outcome of a partition.
#[derive(Debug, Default)]
struct Found {
    count: Count,
    /// The time from the partition to the step-down of the old primary.
    longest: Duration,
    /// The part of it with another primary.
    beside: Duration,
}

impl Stage {
    async fn new() -> Self {
        let set = Arc::new(
            ReplicaSet::start(Layout { members: 3, proxied: true, ..Layout::default() }).await,
        );
        limit_transactions(&set.members).await;
        set_election_timeout(&set).await;
        let name = fresh();
        prepare(&set, &name).await;
        let mut callers: Vec<Arc<dyn Caller>> = Vec::new();
        for application in [CUT_OFF, "other"] {
            let uri = set.uri(&name, &format!("appName={application}"));
            for consistency in [Consistency::Latest, Consistency::Linearizable] {
                let store =
                    open(&uri, Options { timeout: OPERATION_TIMEOUT, ..Options::default() }, false)
                        .await;
                callers.push(Arc::new(Lagging(Direct { store, consistency })));
            }
        }
        // The other server does not reach the old primary, so its look-ups are never stale.
        callers.remove(2);
        Self { set, name, callers }
    }

    /// Isolates a member from the others, and one server from these.
    fn cut_off(&self, member: usize) {
        let host = self.set.host(member).to_string();
        for (n, proxy) in self.set.proxies.iter().enumerate() {
            if n == member {
                proxy.carry_only(|origin: &Origin| {
                    !origin.is_server && origin.application == CUT_OFF
                });
            } else {
                let host = host.clone();
                proxy.carry_only(move |origin: &Origin| {
                    origin.member != host && origin.application != CUT_OFF
                });
            }
        }
    }

    /// Isolates the primary under load until it has stepped down, and restores it.
    async fn survive(&self) -> Found {
        let primary = self.set.primary().await;
        let old = self
            .set
            .members
            .iter()
            .position(|member| member.address() == primary.address())
            .unwrap();
        let before = State::read(&primary.database(&self.name).await).await;
        let load = match before.users.is_empty() {
            true => Load::start(PLAN, &self.callers).await,
            false => Load::resume(PLAN, &self.callers, before),
        };
        let answered = |entry: &Entry| entry.reply.is_answer();
        load.until_some(2 * ANSWERED, Instant::now(), answered).await;
        let cut = Instant::now();
        self.cut_off(old);
        let stepped_down = self.wait_for_step_down(old, cut);
        self.elect_another(old).await;
        let two = Instant::now();
        for reads in [true, false] {
            load.until_some(ANSWERED, two, |entry| {
                entry.call.is_read() == reads && answered(entry)
            })
            .await;
        }
        let longest = stepped_down.await.unwrap();
        load.until_some(ANSWERED, Instant::now(), answered).await;
        self.set.proxies.iter().for_each(|proxy| proxy.carry_all());
        self.set.whole().await;
        load.until_some(2 * ANSWERED, Instant::now(), answered).await;
        self.end(
            load,
            Found { longest, beside: longest.saturating_sub(two - cut), ..Found::default() },
        )
        .await
    }

    /// The time after `cut` at which a member steps down.
    fn wait_for_step_down(&self, old: usize, cut: Instant) -> JoinHandle<Duration> {
        let set = self.set.clone();
        tokio::spawn(async move {
            while is_primary(&set.members[old]).await {
                assert!(cut.elapsed() < STALE, "a primary without a majority has not stepped down");
                sleep(Duration::from_millis(10)).await;
            }
            cut.elapsed()
        })
    }

    /// Makes another member the primary.
    async fn elect_another(&self, old: usize) {
        let since = Instant::now();
        let others = || {
            self.set.members.iter().enumerate().filter(|(n, _)| *n != old).map(|(_, member)| member)
        };
        for candidate in others().cycle() {
            let _ = candidate.admin(doc! { "replSetStepUp": 1 }).await;
            if is_primary(candidate).await {
                return;
            }
            assert!(since.elapsed() < STALE, "no member becomes the primary");
        }
    }

    async fn end(&self, load: Load, found: Found) -> Found {
        let (ledger, before) = load.stop().await;
        let members: Vec<_> = self.set.members.iter().collect();
        no_transaction(&members).await;
        let after = State::read(&self.set.primary().await.database(&self.name).await).await;
        for caller in &self.callers {
            after.is_found(&**caller).await;
        }
        print_line(&format!(
            "a primary without a majority: beside another for {:.1?}, it had stepped down after \
             {:.1?}; {}; {:?}",
            found.beside,
            found.longest,
            ledger.count(),
            ledger.reasons()
        ));
        ledger.may_be_stale(found.longest + OPERATION_TIMEOUT);
        ledger.check(&before, &after);
        Found { count: ledger.count(), ..found }
    }
}

async fn is_primary(member: &Process) -> bool {
    member
        .admin(doc! { "hello": 1 })
        .await
        .is_ok_and(|hello| hello.get_bool("isWritablePrimary").unwrap_or_default())
}

/// Sets the election timeout. A set refuses it right after its first election.
async fn set_election_timeout(set: &ReplicaSet) {
    let since = Instant::now();
    while let Err(error) = try_set_election_timeout(set.primary().await).await {
        assert!(since.elapsed() < TIMEOUT, "the set keeps its election timeout: {error}");
        sleep(Duration::from_millis(100)).await;
    }
}

async fn try_set_election_timeout(primary: &Process) -> mongodb::error::Result<Document> {
    let reply = primary.admin(doc! { "replSetGetConfig": 1 }).await?;
    let mut config: Document = reply.get_document("config").unwrap().clone();
    let version = config.get_i32("version").unwrap();
    config.insert("version", version + 1);
    let settings = config.get_document_mut("settings").unwrap();
    settings.insert("electionTimeoutMillis", ELECTION.as_millis() as i32);
    primary.admin(doc! { "replSetReconfig": config }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_without_a_majority_loses_no_acknowledged_write() {
    Stage::new().await.survive().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_partition() {
    let stage = Stage::new().await;
    let (since, mut count, mut times, mut longest) =
        (Instant::now(), Count::default(), 0, Duration::ZERO);
    while since.elapsed() < long() {
        let found = stage.survive().await;
        count += found.count;
        times += usize::from(found.beside > Duration::ZERO);
        longest = longest.max(found.longest);
    }
    print_line(&format!(
        "a primary without a majority: {times} times beside another primary, for {longest:.1?} at \
         most, under {count}; every reply was right"
    ));
    assert!(times > 0, "there never were two primaries");
}
