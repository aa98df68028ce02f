//! Shards that are killed during a two-phase commit: the coordinator, a participant, or both. After
//! their return, the mutation has taken effect completely or not at all, acknowledged ones are
//! there, and a repeat takes effect once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use mongodb::bson::{Binary, Bson, Document, doc, spec::BinarySubtype};
use polynym_directory::Consistency;
use polynym_mongodb::Options;
use tokio::time::sleep;

use crate::audit::{State, no_transaction};
use crate::caller::{Call, Caller, Direct, Reply};
use crate::group::Group;
use crate::ledger::{Ledger, Start};
use crate::servers::{Layout, Process, Sharded, Signal, make};
use crate::stores::{TIMEOUT, fresh, limit_transactions, long, open, print_line, shards_of_names};
use crate::users;

/// The points at which the coordinator of a commit can be stopped, in order.
const COORDINATOR: [&str; 7] = [
    "hangBeforeWritingParticipantList",
    "hangBeforeWaitingForParticipantListWriteConcern",
    "hangBeforeSendingPrepare",
    "hangBeforeWritingDecision",
    "hangBeforeWaitingForDecisionWriteConcern",
    "hangBeforeSendingCommit",
    "hangBeforeDeletingCoordinatorDoc",
];
/// The points for a participant: at a command of the coordinator, or within.
const PARTICIPANT: [&str; 4] = [
    "prepareTransaction",
    "hangAfterReservingPrepareTimestamp",
    "commitTransaction",
    "hangBeforeCommitingTxn",
];

/// The users and names of one group, by shard. No first statement is for the first shard, which the
/// front end uses for statements outside transactions.
#[derive(Clone, Copy, Debug)]
struct Cast {
    /// A user on the second shard, and a name there.
    first: usize,
    seconds_name: usize,
    /// A user on the third shard, and names there.
    second: usize,
    names: [usize; 2],
}

impl Cast {
    /// The first group with names on the right shards.
    fn choose(shards: &[usize]) -> Self {
        let cast = |(group, shards): (usize, &[usize])| {
            let on = |shard| {
                (0..shards.len())
                    .filter(move |n| shards[*n] == shard)
                    .map(move |n| group * Group::NAMES + n)
            };
            let (mut second, mut third) = (on(1), on(2));
            let first = group * Group::USERS;
            let (seconds_name, names) = (second.next()?, [third.next()?, third.next()?]);
            Some(Self { first, seconds_name, second: first + 1, names })
        };
        shards
            .chunks(Group::NAMES)
            .enumerate()
            .find_map(cast)
            .expect("a group with names on two shards")
    }
}

/// A shard and the point of its kill.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Coordinator(&'static str),
    Participant(&'static str),
    /// Both, at this point of the coordinator.
    Both(&'static str),
}

/// The outcomes of all runs.
#[derive(Debug, Default)]
struct Tally {
    runs: usize,
    kills: usize,
    acknowledged: usize,
    unknown: usize,
    failed: usize,
    longest: Duration,
}

struct Stage {
    cluster: Sharded,
    name: String,
    cast: Cast,
    caller: Arc<Direct>,
    ledger: Ledger,
    tally: Tally,
}

impl Stage {
    async fn new() -> Self {
        let cluster = Sharded::start(3, Layout::default()).await;
        let name = fresh();
        make(cluster.uri(&name)).await;
        let cast = Cast::choose(&shards_of_names(&cluster, &name, 64).await);
        let users = [cast.first, cast.second].map(|n| uuid(*users::id(n).as_bytes()));
        cluster.spread(&format!("{name}.users"), &users).await;
        // The first statement concerns the request, and its shard coordinates.
        cluster.move_chunk(&format!("{name}.requests"), Bson::MinKey, "shard1").await.unwrap();
        limit_transactions(cluster.shards.iter().map(|shard| &shard.members[0])).await;
        let store = open(&cluster.uri(&name), Options::default(), false).await;
        let caller = Arc::new(Direct { store, consistency: Consistency::Linearizable });
        for user in 0..=cast.second {
            assert!(matches!(
                caller.call(&Call::Create(user, Vec::new()), None).await,
                Reply::Done(_)
            ));
        }
        let stage = Self {
            cluster,
            name,
            cast,
            caller,
            ledger: Ledger::default(),
            tally: Tally::default(),
        };
        stage.until_done(&Call::Link(cast.second, cast.seconds_name), "before all").await;
        stage
    }

    /// A mutation of the first user with the second shard as coordinator and the third as
    /// participant.
    fn next(&self) -> Call {
        let Cast { first, second, names, .. } = self.cast;
        match self.tally.runs % 5 {
            0 => Call::Link(first, names[0]),
            1 => Call::Merge(first, second),
            2 => Call::Unmerge(first, second),
            3 => Call::Replace(first, names[0], names[1]),
            _ => Call::Unlink(first, names[1]),
        }
    }

    /// Kills shards during a mutation.
    async fn kill(&mut self, victim: Victim) {
        let (coordinator, participant) = (&self.cluster.shards[1], &self.cluster.shards[2]);
        let (stopped, point, killed) = match victim {
            Victim::Coordinator(point) => (coordinator, point, vec![coordinator]),
            Victim::Participant(point) => (participant, point, vec![participant]),
            Victim::Both(point) => (coordinator, point, vec![coordinator, participant]),
        };
        let (call, request) = (self.next(), format!("run {}", self.tally.runs));
        let entered = stop_at(&stopped.members[0], point).await;
        let since = Instant::now();
        let mut first = self.ledger.start();
        let mut answer = tokio::spawn({
            let (caller, call, request) = (self.caller.clone(), call.clone(), request.clone());
            async move { caller.call(&call, Some(&request)).await }
        });
        tokio::select! {
            () = wait_for(&stopped.members[0], point, entered) => {}
            reply = &mut answer => panic!("{call:?} is answered before {victim:?}: {reply:?}"),
        }
        for shard in &killed {
            shard.members[0].signal(Signal::Kill).await;
        }
        join_all(killed.iter().map(|shard| shard.members[0].restart())).await;
        join_all(killed.iter().map(|shard| shard.whole())).await;
        limit_transactions(killed.iter().map(|shard| &shard.members[0])).await;
        let reply = answer.await.unwrap();
        self.tally.runs += 1;
        self.tally.kills += killed.len();
        match &reply {
            Reply::Done(_) => self.tally.acknowledged += 1,
            Reply::Unknown(_) => self.tally.unknown += 1,
            Reply::Failed(_) => self.tally.failed += 1,
            other => panic!("{victim:?}, {call:?}: {other:?}"),
        }
        if matches!(reply, Reply::Unknown(_)) {
            first.repeat();
            self.look(&call).await;
            self.again(&call, &request, first).await;
        } else {
            self.ledger.add(&call, reply.clone(), &first);
            self.look(&call).await;
            if matches!(reply, Reply::Failed(_)) {
                self.until_done(&call, &request).await;
            }
        }
        self.look(&call).await;
        self.tally.longest = self.tally.longest.max(since.elapsed());
    }

    /// Repeats a mutation until it succeeds.
    async fn until_done(&self, call: &Call, request: &str) {
        let since = Instant::now();
        loop {
            let start = self.ledger.start();
            let reply = self.caller.call(call, Some(request)).await;
            if matches!(reply, Reply::Unknown(_)) {
                return self.again(call, request, start).await;
            }
            self.ledger.add(call, reply.clone(), &start);
            if matches!(reply, Reply::Done(_)) {
                return;
            }
            assert!(!reply.is_answer() && since.elapsed() < TIMEOUT, "{call:?}: {reply:?}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Repeats a mutation of unknown outcome until it succeeds.
    async fn again(&self, call: &Call, request: &str, first: Start) {
        let since = Instant::now();
        loop {
            match self.caller.call(call, Some(request)).await {
                Reply::Done(_) => return self.ledger.add(call, Reply::Done(None), &first),
                reply if reply.is_answer() || since.elapsed() > TIMEOUT => {
                    panic!("{call:?}: {reply:?}")
                }
                _ => sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// Reads all users and names of a mutation.
    async fn look(&self, call: &Call) {
        let Cast { first, second, names, seconds_name } = self.cast;
        let all = [first, second].map(Call::Get).into_iter();
        for look_up in all.chain([names[0], names[1], seconds_name].map(Call::Resolve)) {
            let since = Instant::now();
            loop {
                let start = self.ledger.start();
                let reply = self.caller.call(&look_up, None).await;
                self.ledger.add(&look_up, reply.clone(), &start);
                if reply.is_answer() {
                    break;
                }
                assert!(since.elapsed() < TIMEOUT, "{look_up:?} after {call:?}: {reply:?}");
            }
        }
    }

    async fn end(self) {
        let shards: Vec<_> = self.cluster.shards.iter().map(|shard| &shard.members[0]).collect();
        let waited = no_transaction(&shards).await;
        let after = State::read(&self.cluster.client().await.database(&self.name)).await;
        after.is_found(&*self.caller).await;
        self.ledger.check(&State::default(), &after);
        print_line(&format!(
            "shards killed in a two-phase commit: {:?}; {}; no transaction was open {waited:.1?} \
             after the last",
            self.tally,
            self.ledger.count()
        ));
    }
}

fn uuid(bytes: [u8; 16]) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: bytes.into() })
}

/// Whether a point is a command, before which the server stops.
fn is_command(point: &str) -> bool {
    point.ends_with("Transaction")
}

/// Makes a server stop at a point. Returns the number of times at the stop.
async fn stop_at(server: &Process, point: &str) -> i64 {
    let command = if is_command(point) {
        let data = doc! {
            "failCommands": [point],
            "blockConnection": true,
            "blockTimeMS": 3_600_000_i64,
            "failInternalCommands": true,
        };
        doc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": data }
    } else {
        doc! { "configureFailPoint": point, "mode": "alwaysOn" }
    };
    let count = server.admin(command).await.unwrap_or_else(|error| panic!("{point}: {error}"));
    number(&count, "count") + 1
}

/// Waits until a server has stopped.
async fn wait_for(server: &Process, point: &str, entered: i64) {
    let point = if is_command(point) { "failCommand" } else { point };
    let most = TIMEOUT.as_millis() as i64;
    let wait = doc! { "waitForFailPoint": point, "timesEntered": entered, "maxTimeMS": most };
    server.admin(wait).await.unwrap_or_else(|error| panic!("{point}: {error}"));
}

fn number(document: &Document, field: &str) -> i64 {
    let value = document.get(field);
    value.and_then(|value| value.as_i64().or_else(|| value.as_i32().map(i64::from))).unwrap()
}

async fn kill_all(victims: impl IntoIterator<Item = Victim>) {
    let mut stage = Stage::new().await;
    for victim in victims {
        stage.kill(victim).await;
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_killed_in_a_commit_leaves_all_of_it_or_none() {
    kill_all([
        Victim::Coordinator("hangBeforeSendingPrepare"),
        Victim::Participant("commitTransaction"),
        Victim::Both("hangBeforeWaitingForDecisionWriteConcern"),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_phases() {
    let since = Instant::now();
    let mut stage = Stage::new().await;
    while since.elapsed() < long() {
        let alone = COORDINATOR
            .map(Victim::Coordinator)
            .into_iter()
            .chain(PARTICIPANT.map(Victim::Participant));
        for victim in alone.chain(COORDINATOR.map(Victim::Both)) {
            stage.kill(victim).await;
        }
    }
    stage.end().await;
}
