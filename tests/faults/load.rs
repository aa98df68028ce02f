//! Callers that make random calls about a few users and names, so that they conflict, and record
//! the outcomes.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::sleep;
use uuid::Uuid;

use crate::audit::State;
use crate::caller::{Call, Caller, Reply};
use crate::group::Group;
use crate::ledger::{Entry, Ledger};
use crate::stores::TIMEOUT;

/// The calls that callers make.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub callers: usize,
    /// At most 64 names.
    pub names: usize,
    pub users: usize,
    /// Whether users are also looked up by id.
    pub gets: bool,
    /// Whether users are created. A server generates ids that these tests do not know.
    pub creates: bool,
    /// Whether users are merged and unmerged. Then each call stays within a [`Group`].
    pub merges: bool,
    /// The pause of a caller between two calls.
    pub pause: Duration,
}

impl Plan {
    pub const DEFAULT: Self = Self {
        callers: 12,
        names: 24,
        users: 8,
        gets: false,
        creates: true,
        merges: false,
        pause: Duration::from_millis(5),
    };
}

impl Default for Plan {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The length of a load.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    Calls(usize),
    Time(Duration),
}

/// Running callers.
pub struct Load {
    pub ledger: Arc<Ledger>,
    before: State,
    stop: Arc<AtomicBool>,
    callers: JoinSet<()>,
}

/// The state that callers share.
struct Shared {
    plan: Plan,
    ledger: Arc<Ledger>,
    /// The last seen owner of each name: 0 for none, else the user's number plus 1.
    owners: Vec<AtomicUsize>,
    created: AtomicUsize,
    stop: Arc<AtomicBool>,
}

impl Load {
    /// Creates the users on a working store and starts the callers, each with one of `to`.
    pub async fn start(plan: Plan, to: &[Arc<dyn Caller>]) -> Self {
        let mut before = State::default();
        for user in 0..plan.users {
            let reply = to[0].answer(&Call::Create(user, Vec::new())).await;
            assert_eq!(reply, Reply::Done(Some(Default::default())), "user {user}");
            before.users.insert(user, Default::default());
        }
        Self::resume(plan, to, before)
    }

    /// Starts the callers for existing users.
    pub fn resume(plan: Plan, to: &[Arc<dyn Caller>], before: State) -> Self {
        let (ledger, stop) = (Arc::new(Ledger::default()), Arc::new(AtomicBool::new(false)));
        let shared = Arc::new(Shared {
            plan,
            ledger: ledger.clone(),
            owners: (0..plan.names).map(|_| AtomicUsize::new(0)).collect(),
            created: AtomicUsize::new(plan.users),
            stop: stop.clone(),
        });
        let mut callers = JoinSet::new();
        for caller in to.iter().cycle().take(plan.callers) {
            callers.spawn(call_on(shared.clone(), caller.clone()));
        }
        Self { ledger, before, stop, callers }
    }

    /// Runs for this length.
    pub async fn run_for(&self, length: Length) {
        match length {
            Length::Time(time) => sleep(time).await,
            Length::Calls(calls) => self.until_some(calls, Instant::now(), |_| true).await,
        }
    }

    /// Waits until this number of look-ups, and of mutations, was answered after an instant.
    pub async fn until_answered(&self, calls: usize, since: Instant) {
        for reads in [true, false] {
            let is_answered =
                |entry: &Entry| entry.call.is_read() == reads && entry.reply.is_answer();
            self.until_some(calls, since, is_answered).await;
        }
    }

    /// Waits until this number of matching calls ended after an instant.
    pub async fn until_some(&self, calls: usize, since: Instant, fits: impl Fn(&Entry) -> bool) {
        let begun = Instant::now();
        while self.ledger.count_since(since, &fits) < calls {
            assert!(
                begun.elapsed() < 2 * TIMEOUT,
                "hardly any calls fit: {}; {:?}",
                self.ledger.count(),
                self.ledger.reasons()
            );
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Stops the callers after their present calls. Returns the ledger and the initial state.
    pub async fn stop(mut self) -> (Arc<Ledger>, State) {
        self.stop.store(true, Relaxed);
        while let Some(ended) = self.callers.join_next().await {
            ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        }
        (self.ledger, self.before)
    }
}

async fn call_on(shared: Arc<Shared>, caller: Arc<dyn Caller>) {
    let mut random = Random::default();
    while !shared.stop.load(Relaxed) {
        let call = shared.choose(&mut random);
        if call.is_read() || random.below(2) == 0 {
            let start = shared.ledger.start().with_lag(caller.may_lag(&call));
            let reply = caller.call(&call, None).await;
            shared.learn(&call, &reply);
            shared.ledger.add(&call, reply, &start);
        } else {
            shared
                .retry_until_answered(
                    &call,
                    &Uuid::from_u128(random.next().into()).to_string(),
                    &*caller,
                )
                .await;
        }
        sleep(shared.plan.pause).await;
    }
}

impl Shared {
    fn choose(&self, random: &mut Random) -> Call {
        if self.plan.merges {
            return self.choose_in_group(random);
        }
        let (user, name) = (random.below(self.plan.users), random.below(self.plan.names));
        let owner = self.owners[name].load(Relaxed).checked_sub(1);
        match random.below(100) {
            0..40 => Call::Resolve(name),
            40..45 if self.plan.gets => Call::Get(user),
            45..47 if self.plan.creates => {
                let names =
                    [name, (name + 1 + random.below(self.plan.names - 1)) % self.plan.names];
                Call::Create(self.created.fetch_add(1, Relaxed), names.into())
            }
            47..70 => Call::Link(user, name),
            70..85 => Call::Unlink(owner.unwrap_or(user), name),
            _ => {
                let new = (name + 1 + random.below(self.plan.names - 1)) % self.plan.names;
                Call::Replace(owner.unwrap_or(user), name, new)
            }
        }
    }

    /// Unmerges rarely find merged users, so they are tried more often.
    fn choose_in_group(&self, random: &mut Random) -> Call {
        let group = random.below(self.plan.users / Group::USERS);
        let member = random.below(Group::USERS);
        let other =
            group * Group::USERS + (member + 1 + random.below(Group::USERS - 1)) % Group::USERS;
        let user = group * Group::USERS + member;
        let slot = random.below(Group::NAMES);
        let new = group * Group::NAMES + (slot + 1 + random.below(Group::NAMES - 1)) % Group::NAMES;
        let name = group * Group::NAMES + slot;
        let owner = self.owners[name].load(Relaxed).checked_sub(1).unwrap_or(user);
        match random.below(100) {
            0..20 => Call::Resolve(name),
            20..35 => Call::Get(user),
            35..55 => Call::Link(user, name),
            55..65 => Call::Unlink(owner, name),
            65..72 => Call::Replace(owner, name, new),
            72..82 => Call::Merge(user, other),
            _ => Call::Unmerge(user, other),
        }
    }

    /// Repeats a call with a request id of its own while its outcome is unknown.
    async fn retry_until_answered(&self, call: &Call, request: &str, caller: &dyn Caller) {
        let mut first = self.ledger.start();
        let mut reply = caller.call(call, Some(request)).await;
        let mut tries = 0;
        while matches!(reply, Reply::Unknown(_)) && tries < 20 {
            tries += 1;
            sleep(Duration::from_millis(100)).await;
            first.repeat();
            let again = self.ledger.start();
            match caller.call(call, Some(request)).await {
                // The answer shows the present user, possibly long after the call.
                Reply::Done(_) => reply = Reply::Done(None),
                Reply::Unknown(_) | Reply::Failed(_) => {}
                // This attempt failed. An earlier one may still take effect.
                refused => {
                    self.ledger.add(call, refused, &again);
                    break;
                }
            }
        }
        self.learn(call, &reply);
        self.ledger.add(call, reply, &first);
    }

    fn learn(&self, call: &Call, reply: &Reply) {
        let owns = |name: usize, owner: usize| self.owners[name].store(owner + 1, Relaxed);
        match (call, reply) {
            (Call::Link(user, name) | Call::Replace(user, _, name), Reply::Done(_)) => {
                owns(*name, *user)
            }
            (Call::Create(user, names), Reply::Done(_)) => {
                names.iter().for_each(|name| owns(*name, *user))
            }
            (Call::Resolve(name), Reply::Found(owner, _)) => owns(*name, *owner),
            (_, Reply::Taken(name, owner)) => owns(*name, *owner),
            _ => {}
        }
    }
}

/// A stream of random numbers (xorshift).
pub struct Random(u64);

impl Default for Random {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0) | 1)
    }
}

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}
