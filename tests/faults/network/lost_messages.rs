//! Statements that fail, hang or get no answer, and replies that the network loses. After each call
//! the state is read through another store: failed calls had no effect, successful ones are
//! complete, and recoverable outcomes were recovered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mongodb::bson::{Bson, Document, doc};
use polynym_directory::Consistency;
use polynym_mongodb::Options;
use tokio::time::sleep;

use crate::audit::{State, no_transaction};
use crate::caller::{Call, Caller, Direct, Reply};
use crate::ledger::Ledger;
use crate::servers::{Process, Proxy, ReplicaSet, Side};
use crate::stores::{OwnSet, TIMEOUT, fresh, open, prepare, print_line};

/// The statements of mutations.
const STATEMENTS: [&str; 5] = ["find", "insert", "update", "delete", "commitTransaction"];

/// Error codes of MongoDB: shutdowns, lost primaries, conflicts, missing transactions, timeouts,
/// and unspecific ones.
const CODES: [i32; 13] = [91, 112, 11_601, 11_600, 11_602, 10_107, 189, 6, 50, 251, 24, 8, 1];

/// Error codes of a commit that succeeded without a known write concern: WriteConcernFailed, a
/// shutdown, Interrupted, UnknownReplWriteConcern, UnsatisfiableWriteConcern.
const CONCERNS: [i32; 5] = [64, 91, 11_601, 79, 100];

/// The fault of a statement.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    Close,
    Block,
    Code(i32),
    /// The commit succeeded, but its write concern is unknown.
    Concern(i32),
}

impl Fault {
    /// The fail point that makes statements of this store fail this way.
    pub fn point(self, statement: &str, mode: impl Into<Bson>) -> Document {
        let mut data = doc! { "failCommands": [statement], "appName": "faults" };
        data.extend(match self {
            Self::Close => doc! { "closeConnection": true },
            Self::Block => doc! { "blockConnection": true, "blockTimeMS": 300 },
            Self::Code(code) => doc! { "errorCode": code },
            Self::Concern(code) => {
                let error = doc! { "code": code, "codeName": "Injected", "errmsg": "injected" };
                doc! { "writeConcernError": error }
            }
        });
        doc! { "configureFailPoint": "failCommand", "mode": mode.into(), "data": data }
    }

    /// Whether a single occurrence may fail the call: MongoDB refuses without a reason.
    const fn is_final(self) -> bool {
        matches!(self, Self::Code(11_601 | 50 | 8 | 1))
    }
}

/// A store under faults, and a second one that reads the true state.
pub struct Stage {
    set: OwnSet,
    pub troubled: Arc<dyn Caller>,
    pub truth: Direct,
    pub ledger: Ledger,
    name: String,
    next: usize,
}

impl Stage {
    pub async fn new(
        set: OwnSet,
        uri: impl FnOnce(&ReplicaSet, &str) -> String,
        timeout: Duration,
    ) -> Self {
        let name = fresh();
        prepare(&set, &name).await;
        let store = open(&uri(&set, &name), Options { timeout, ..Options::default() }, false).await;
        let healthy = open(&set.uri(&name, ""), Options::default(), false).await;
        let consistency = Consistency::Linearizable;
        let truth = Direct { store: healthy, consistency };
        Self {
            set,
            troubled: Arc::new(Direct { store, consistency }),
            truth,
            ledger: Ledger::default(),
            name,
            next: 0,
        }
    }

    /// Calls, and records the reply.
    async fn call(&self, caller: &dyn Caller, call: &Call, request: Option<&str>) -> Reply {
        let start = self.ledger.start();
        let reply = caller.call(call, request).await;
        self.ledger.add(call, reply.clone(), &start);
        reply
    }

    /// A possible mutation, with its preconditions created.
    pub async fn mutation(&mut self, kind: usize) -> Call {
        let user = self.next;
        self.next += 1;
        let (old, new) = (2 * user % 64, (2 * user + 1) % 64);
        if kind > 0 {
            self.free(old, new).await;
            let names = if kind > 1 { vec![old] } else { Vec::new() };
            let reply = self.call(&self.truth, &Call::Create(user, names), None).await;
            assert!(matches!(reply, Reply::Done(_)), "{reply:?}");
        } else {
            self.free(old, new).await;
        }
        match kind {
            0 => Call::Create(user, vec![old, new]),
            1 => Call::Link(user, new),
            2 => Call::Unlink(user, old),
            _ => Call::Replace(user, old, new),
        }
    }

    /// Unlinks names from their owners.
    async fn free(&self, old: usize, new: usize) {
        for name in [old, new] {
            if let Reply::Found(owner, _) = self.call(&self.truth, &Call::Resolve(name), None).await
            {
                let reply = self.call(&self.truth, &Call::Unlink(owner, name), None).await;
                assert!(matches!(reply, Reply::Done(_)), "{reply:?}");
            }
        }
    }

    /// Reads all users and names of a mutation.
    pub async fn look(&self, call: &Call) {
        let (user, names) = match call {
            Call::Create(user, names) => (user, names.clone()),
            Call::Link(user, name) | Call::Unlink(user, name) => (user, vec![*name]),
            Call::Replace(user, old, new) => (user, vec![*old, *new]),
            Call::Merge(..) | Call::Unmerge(..) | Call::Resolve(_) | Call::Get(_) => return,
        };
        self.call(&self.truth, &Call::Get(*user), None).await;
        for name in names {
            self.call(&self.truth, &Call::Resolve(name), None).await;
        }
    }

    /// Repeats a mutation until it succeeds. After a simulated shutdown, the driver has no server
    /// until its next heartbeat, after ten seconds.
    async fn until_done(&self, call: &Call, request: &str) {
        let since = Instant::now();
        loop {
            match self.troubled.call(call, Some(request)).await {
                Reply::Done(_) => return,
                reply if reply.is_answer() || since.elapsed() > TIMEOUT => {
                    panic!("{call:?}: {reply:?}")
                }
                _ => sleep(Duration::from_millis(100)).await,
            }
        }
    }

    fn server(&self) -> &Process {
        &self.set.members[0]
    }

    pub async fn fail(&self, point: Document) {
        self.server().admin(point).await.unwrap();
    }

    pub async fn clear_faults(&self) {
        self.fail(doc! { "configureFailPoint": "failCommand", "mode": "off" }).await;
    }

    /// Checks everything. Returns a summary.
    pub async fn end(self) -> String {
        no_transaction(&[self.server()]).await;
        let database = self.server().database(&self.name).await;
        let after = State::read(&database).await;
        self.ledger.check(&State::default(), &after);
        after.is_found(&*self.troubled).await;
        database.drop().await.unwrap();
        format!("{}; {:?}", self.ledger.count(), self.ledger.reasons())
    }
}

/// Whether calls have request ids: with and without one, or in a short run one of both in turn.
pub const fn requests(every: bool, turn: usize) -> &'static [bool] {
    match (every, turn.is_multiple_of(2)) {
        (true, _) => &[false, true],
        (false, true) => &[false],
        (false, false) => &[true],
    }
}

/// Injects each fault once at each kind of statement of each kind of mutation: the call must
/// succeed, unless MongoDB refuses for good.
async fn fail_once(faults: &[Fault], every: bool) {
    let set = OwnSet::new().await;
    let mut stage = Stage::new(set, |set, name| set.uri(name, "appName=faults"), TIMEOUT).await;
    let (mut runs, mut noticed) = (0, 0);
    for fault in faults {
        for (turn, statement) in STATEMENTS.into_iter().enumerate() {
            if matches!(fault, Fault::Concern(_)) && statement != "commitTransaction" {
                continue;
            }
            let of_kind = |kind| requests(every, turn + kind).iter().map(move |id| (kind, *id));
            for (kind, with_request) in (0..4).flat_map(of_kind) {
                let call = stage.mutation(kind).await;
                let request = with_request.then(|| format!("once {runs}"));
                stage.fail(fault.point(statement, doc! { "times": 1 })).await;
                let reply = stage.call(&*stage.troubled, &call, request.as_deref()).await;
                stage.clear_faults().await;
                stage.look(&call).await;
                runs += 1;
                if !matches!(reply, Reply::Done(_)) {
                    noticed += 1;
                    assert!(fault.is_final(), "{fault:?} of {statement} in {call:?}: {reply:?}");
                }
            }
        }
    }
    let ended = stage.end().await;
    print_line(&format!(
        "a statement fails once: {runs} runs, of which callers noticed {noticed}; {ended}"
    ));
}

/// Faults that outlast the retries of the store. Afterwards the repeated mutation takes effect
/// once.
async fn fail_on(faults: &[Fault], statements: &[&str]) {
    let set = OwnSet::new().await;
    let timeout = Duration::from_secs(1);
    let mut stage = Stage::new(set, |set, name| set.uri(name, "appName=faults"), timeout).await;
    let (mut runs, mut longest) = (0, Duration::ZERO);
    for (fault, statement) in
        faults.iter().flat_map(|fault| statements.iter().map(move |name| (fault, *name)))
    {
        for kind in 0..4 {
            let (call, request) = (stage.mutation(kind).await, format!("on {runs}"));
            stage.fail(fault.point(statement, "alwaysOn")).await;
            let (since, start) = (Instant::now(), stage.ledger.start());
            let reply = stage.troubled.call(&call, Some(&request)).await;
            longest = longest.max(since.elapsed());
            let is_unknown = matches!(reply, Reply::Unknown(_));
            if !is_unknown {
                stage.ledger.add(&call, reply.clone(), &start);
            }
            stage.clear_faults().await;
            stage.look(&call).await;
            let again = if is_unknown { start } else { stage.ledger.start() };
            stage.until_done(&call, &request).await;
            if !matches!(reply, Reply::Done(_)) {
                stage.ledger.add(&call, Reply::Done(None), &again);
            }
            runs += 1;
        }
    }
    let ended = stage.end().await;
    assert!(longest < TIMEOUT, "a call of at most {timeout:?} took {longest:?}");
    print_line(&format!(
        "a statement fails again and again: {runs} runs, the longest of {longest:.1?}; {ended}"
    ));
}

/// The proxy holds the nth reply of each mutation, forever or until the timeout of the store.
async fn lose_replies(kinds: &[usize], hold: bool) {
    let set = OwnSet::new().await;
    let proxy = Proxy::start(set.members[0].address()).await;
    let timeout = if hold { Duration::from_secs(2) } else { Options::default().timeout };
    let uri = |_: &ReplicaSet, name: &str| {
        format!("mongodb://{}/{name}?directConnection=true", proxy.address())
    };
    let mut stage = Stage::new(set, uri, timeout).await;
    let (mut runs, mut longest) = (0, Duration::ZERO);
    for (kind, with_request) in kinds.iter().flat_map(|kind| [(*kind, false), (*kind, true)]) {
        for nth in 1.. {
            let call = stage.mutation(kind).await;
            let request = with_request.then(|| format!("lost {runs}"));
            let mut trap = proxy.trap_statement(Side::Reply, nth);
            let since = Instant::now();
            let (reply, was_caught) = {
                let answer = stage.call(&*stage.troubled, &call, request.as_deref());
                tokio::pin!(answer);
                tokio::select! {
                    reply = &mut answer => (reply, false),
                    () = trap.caught() => {
                        let kept = hold.then_some(trap);
                        let reply = answer.await;
                        drop(kept);
                        (reply, true)
                    }
                }
            };
            longest = longest.max(since.elapsed());
            stage.look(&call).await;
            if !was_caught {
                assert!(nth > 3 && matches!(reply, Reply::Done(_)), "{reply:?}");
                break;
            }
            runs += 1;
            assert!(hold || matches!(reply, Reply::Done(_)), "reply {nth} of {call:?}: {reply:?}");
        }
    }
    let ended = stage.end().await;
    assert!(longest < TIMEOUT, "a call of at most {timeout:?} took {longest:?}");
    let how = if hold { "never come" } else { "are lost with their connection" };
    print_line(&format!("replies that {how}: {runs} runs, the longest of {longest:.1?}; {ended}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_fails_once_is_retried() {
    let concerns = [11_601, 79, 100].map(Fault::Concern);
    fail_once(&[&[Fault::Close, Fault::Code(112)][..], &concerns].concat(), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn persistent_failures_are_reported() {
    fail_on(&[Fault::Close], &["insert", "commitTransaction"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_replies_are_recovered() {
    lose_replies(&[3], false).await;
    lose_replies(&[1], true).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn long_lost() {
    let codes = CODES.map(Fault::Code);
    let concerns = CONCERNS.map(Fault::Concern);
    fail_once(&[&[Fault::Close, Fault::Block][..], &concerns, &codes].concat(), true).await;
    fail_on(&[&[Fault::Close][..], &codes].concat(), &["insert", "commitTransaction"]).await;
    fail_on(&concerns, &["commitTransaction"]).await;
    fail_on(&[Fault::Close, Fault::Code(112)], &["find", "update", "delete", "abortTransaction"])
        .await;
    lose_replies(&[0, 1, 2, 3], false).await;
    lose_replies(&[0, 1, 2, 3], true).await;
}
