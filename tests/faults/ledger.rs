//! The calls of all callers with their outcomes, in order. The history of each name and of each
//! user must be linearizable; if users are merged, that of each [`group`]. Acknowledged calls must
//! take effect, failed ones never, and unknown ones completely at any time, or never.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::audit::State;
use crate::caller::{Call, Names, Reply};
use crate::group;
use crate::linear::{Event, Model, check};

/// A call and its answer.
#[derive(Clone, Debug)]
pub struct Entry {
    pub call: Call,
    pub reply: Reply,
    /// Increasing numbers that order the calls.
    pub start: u64,
    pub end: u64,
    /// The time of the answer and the duration; of a repeated call, the duration of the longest
    /// attempt.
    pub at: Instant,
    pub took: Duration,
    /// Whether the answer may be older than the call.
    may_lag: bool,
}

/// The start of a call.
pub struct Start {
    clock: u64,
    sent: Instant,
    longest: Duration,
    may_lag: bool,
}

impl Start {
    /// Sets whether the answer may be older than the call.
    pub fn with_lag(self, may_lag: bool) -> Self {
        Self { may_lag, ..self }
    }

    /// Records the end of an attempt that is repeated.
    pub fn repeat(&mut self) {
        self.longest = self.longest();
        self.sent = Instant::now();
    }

    fn longest(&self) -> Duration {
        self.longest.max(self.sent.elapsed())
    }
}

#[derive(Default)]
pub struct Ledger {
    clock: AtomicU64,
    entries: Mutex<Vec<Entry>>,
    /// The time after an acknowledgement for which a lagging look-up may show the earlier state.
    lag: Mutex<Duration>,
}

/// The number of calls, by outcome.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    pub look_ups: usize,
    pub mutations: usize,
    pub refused: usize,
    pub failed: usize,
    pub unknown: usize,
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.look_ups += other.look_ups;
        self.mutations += other.mutations;
        self.refused += other.refused;
        self.failed += other.failed;
        self.unknown += other.unknown;
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { look_ups, mutations, refused, failed, unknown } = self;
        write!(
            f,
            "{look_ups} look-ups and {mutations} mutations, of which {refused} were refused by the \
             rules, {failed} failed and {unknown} ended unknown"
        )
    }
}

impl Ledger {
    pub fn start(&self) -> Start {
        let clock = self.clock.fetch_add(1, SeqCst);
        Start { clock, sent: Instant::now(), longest: Duration::ZERO, may_lag: false }
    }

    pub fn add(&self, call: &Call, reply: Reply, start: &Start) {
        let end = self.clock.fetch_add(1, SeqCst);
        let (start, at, took, may_lag) =
            (start.clock, Instant::now(), start.longest(), start.may_lag);
        self.entries.lock().unwrap().push(Entry {
            call: call.clone(),
            reply,
            start,
            end,
            at,
            took,
            may_lag,
        });
    }

    /// Sets the time for which lagging look-ups can be stale.
    pub fn may_be_stale(&self, lag: Duration) {
        *self.lag.lock().unwrap() = lag;
    }

    /// The number of matching calls since `since`.
    pub fn count_since(&self, since: Instant, fits: impl Fn(&Entry) -> bool) -> usize {
        self.entries.lock().unwrap().iter().filter(|entry| entry.at >= since && fits(entry)).count()
    }

    pub fn count(&self) -> Count {
        let mut count = Count::default();
        for Entry { call, reply, .. } in self.entries.lock().unwrap().iter() {
            *(if call.is_read() { &mut count.look_ups } else { &mut count.mutations }) += 1;
            match reply {
                Reply::Taken(..) | Reply::NotOwned | Reply::Merged(..) | Reply::NotMerged => {
                    count.refused += 1
                }
                Reply::Failed(_) => count.failed += 1,
                Reply::Unknown(_) => count.unknown += 1,
                Reply::Done(_)
                | Reply::Found(..)
                | Reply::Nobody
                | Reply::User(_)
                | Reply::Part(..) => {}
            }
        }
        count
    }

    /// The longest time without an answered look-up (or mutation), and the longest call.
    pub fn silence(&self, reads: bool, since: Instant) -> (Duration, Duration) {
        let entries = self.entries.lock().unwrap();
        let of_kind =
            || entries.iter().filter(|entry| entry.call.is_read() == reads && entry.at >= since);
        let mut answered: Vec<Instant> =
            of_kind().filter(|entry| entry.reply.is_answer()).map(|entry| entry.at).collect();
        answered.push(since);
        answered.extend(of_kind().map(|entry| entry.at).max());
        answered.sort_unstable();
        let gap = answered.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
        (gap, of_kind().map(|entry| entry.took).max().unwrap_or_default())
    }

    /// The distinct reasons of failed calls.
    pub fn reasons(&self) -> BTreeSet<String> {
        let entries = self.entries.lock().unwrap();
        let reason = |entry: &Entry| match &entry.reply {
            Reply::Failed(reason) => Some(format!("failed: {reason}")),
            Reply::Unknown(reason) => Some(format!("unknown: {reason}")),
            _ => None,
        };
        entries.iter().filter_map(reason).collect()
    }

    /// The users of all calls.
    pub fn users(&self) -> BTreeSet<usize> {
        self.entries.lock().unwrap().iter().filter_map(|entry| user_of(&entry.call)).collect()
    }

    /// Fails unless one store with the state `before` and finally `after` could have given all
    /// replies.
    pub fn check(&self, before: &State, after: &State) {
        let (users, entries) = (self.users(), self.entries.lock().unwrap());
        let (now, lag) = (self.clock.load(SeqCst), *self.lag.lock().unwrap());
        if entries.iter().any(|entry| matches!(entry.call, Call::Merge(..))) {
            return group::check_all(&entries, lag, now, before, after);
        }
        let last = now..now + 1;
        for name in 0..64 {
            let history = History::of(&entries, lag, |entry| {
                !name_events(entry, entry.start, name).is_empty()
            });
            let mut events: Vec<_> =
                history.flat_map(|entry, start| name_events(entry, start, name));
            let owner = |state: &State| state.owners.get(&name).copied();
            events.push(Event {
                call: NameCall::Is(owner(after)),
                start: last.start,
                end: Some(last.end),
            });
            let outcome = check::<Name>(owner(before), events);
            outcome.unwrap_or_else(|why| panic!("name {name} has an impossible history: {why}"));
        }
        assert!(
            after.users.keys().all(|user| users.contains(user) || before.users.contains_key(user)),
            "strangers"
        );
        for user in users {
            let history =
                History::of(&entries, lag, |entry| user_event(entry, entry.start, user).is_some());
            let mut events: Vec<_> =
                history.flat_map(|entry, start| user_event(entry, start, user));
            let call = UserCall::Is(after.users.get(&user).copied());
            events.push(Event { call, start: last.start, end: Some(last.end) });
            let outcome = check::<User>(before.users.get(&user).copied(), events);
            outcome.unwrap_or_else(|why| panic!("user {user} has an impossible history: {why}"));
        }
    }
}

/// The calls that concern one name or user.
pub struct History<'e> {
    entries: Vec<&'e Entry>,
    lag: Duration,
}

impl<'e> History<'e> {
    pub fn of(entries: &'e [Entry], lag: Duration, is_part: impl Fn(&Entry) -> bool) -> Self {
        Self { entries: entries.iter().filter(|entry| is_part(entry)).collect(), lag }
    }

    /// The effects of the calls, each with its earliest possible time.
    pub fn flat_map<T, I: IntoIterator<Item = T>>(
        &self,
        say: impl Fn(&'e Entry, u64) -> I,
    ) -> Vec<T> {
        self.entries.iter().flat_map(|entry| say(entry, self.start(entry))).collect()
    }

    /// The earliest time of the state that an entry may show: lagging look-ups see what was
    /// acknowledged early enough.
    fn start(&self, entry: &Entry) -> u64 {
        if !entry.may_lag {
            return entry.start;
        }
        let sent = entry.at - entry.took;
        let was_done = |other: &&&Entry| {
            matches!(other.reply, Reply::Done(_))
                && other.end < entry.start
                && other.at + self.lag <= sent
        };
        self.entries.iter().filter(was_done).map(|other| other.end).max().unwrap_or_default()
    }
}

/// The owner of one name.
struct Name;

#[derive(Clone, Debug)]
enum NameCall {
    /// Linked by this user, which owns it already, or it had no owner.
    Take(usize),
    /// Unlinked by this user, which owned it.
    Release(usize),
    /// A refusal: this user does not own it.
    Lacks(usize),
    /// Its owner.
    Is(Option<usize>),
}

impl Model for Name {
    type State = Option<usize>;
    type Call = NameCall;

    fn step(owner: &Option<usize>, call: &NameCall) -> Option<Option<usize>> {
        let (fits, after) = match call {
            NameCall::Take(user) => (owner.is_none_or(|owner| owner == *user), Some(*user)),
            NameCall::Release(user) => (*owner == Some(*user), None),
            NameCall::Lacks(user) => (*owner != Some(*user), *owner),
            NameCall::Is(other) => (owner == other, *owner),
        };
        fits.then_some(after)
    }

    fn is_read(call: &NameCall) -> bool {
        matches!(call, NameCall::Lacks(_) | NameCall::Is(_))
    }
}

/// The effect of a call on a name.
fn name_events(entry: &Entry, start: u64, name: usize) -> Vec<Event<NameCall>> {
    use NameCall::{Is, Lacks, Release, Take};
    let end = if matches!(entry.reply, Reply::Unknown(_)) { None } else { Some(entry.end) };
    let said: Vec<(usize, NameCall)> = match (&entry.call, &entry.reply) {
        (_, Reply::Failed(_)) => Vec::new(),
        (Call::Create(user, names), Reply::Done(_) | Reply::Unknown(_)) => {
            names.iter().map(|name| (*name, Take(*user))).collect()
        }
        (Call::Link(user, name), Reply::Done(_) | Reply::Unknown(_)) => vec![(*name, Take(*user))],
        (Call::Unlink(user, name), Reply::Done(_) | Reply::Unknown(_)) => {
            vec![(*name, Release(*user))]
        }
        (Call::Unlink(user, name) | Call::Replace(user, name, _), Reply::NotOwned) => {
            vec![(*name, Lacks(*user))]
        }
        (Call::Replace(user, old, new), Reply::Done(_) | Reply::Unknown(_)) => {
            vec![(*old, Release(*user)), (*new, Take(*user))]
        }
        (Call::Replace(user, old, _), Reply::Taken(new, owner)) => {
            vec![(*old, Is(Some(*user))), (*new, Is(Some(*owner)))]
        }
        (_, Reply::Taken(name, owner)) => vec![(*name, Is(Some(*owner)))],
        (Call::Resolve(name), Reply::Found(owner, _)) => vec![(*name, Is(Some(*owner)))],
        (Call::Resolve(name), Reply::Nobody) => vec![(*name, Is(None))],
        (Call::Resolve(_) | Call::Get(_), _) => Vec::new(),
        other => panic!("no answer to this call: {other:?}"),
    };
    let here = said.into_iter().filter(|(of, _)| *of == name);
    here.map(|(_, call)| Event { call, start, end }).collect()
}

/// The names that one user lists, if it exists.
struct User;

#[derive(Clone, Debug)]
enum UserCall {
    /// The call succeeds; the answer lists these names.
    Did(Call, Option<Names>),
    /// The first is listed, if present, and the second is not.
    Has(Option<usize>, usize),
    Is(Option<Names>),
}

impl Model for User {
    type State = Option<Names>;
    type Call = UserCall;

    fn step(listed: &Option<Names>, call: &UserCall) -> Option<Option<Names>> {
        match call {
            UserCall::Did(call, reply) => {
                let after = changed(*listed, call)?;
                reply.is_none_or(|reply| reply == after).then_some(Some(after))
            }
            UserCall::Has(first, second) => {
                let names = (*listed)?;
                (first.is_none_or(|first| names.has(first)) && !names.has(*second))
                    .then_some(*listed)
            }
            UserCall::Is(other) => (listed == other).then_some(*listed),
        }
    }

    fn is_read(call: &UserCall) -> bool {
        matches!(call, UserCall::Has(..) | UserCall::Is(_))
    }
}

/// The names of a user after a successful call; none if it cannot succeed.
fn changed(listed: Option<Names>, call: &Call) -> Option<Names> {
    match (call, listed) {
        (Call::Create(_, names), None) => Some(names.iter().copied().collect()),
        (Call::Link(_, name), Some(names)) => Some(names.with(*name)),
        (Call::Unlink(_, name), Some(names)) => names.has(*name).then(|| names.without(*name)),
        (Call::Replace(_, old, new), Some(names)) => {
            names.has(*old).then(|| names.without(*old).with(*new))
        }
        _ => None,
    }
}

fn user_of(call: &Call) -> Option<usize> {
    match call {
        Call::Create(user, _)
        | Call::Link(user, _)
        | Call::Unlink(user, _)
        | Call::Replace(user, ..) => Some(*user),
        Call::Merge(user, _) | Call::Unmerge(user, _) | Call::Get(user) => Some(*user),
        Call::Resolve(_) => None,
    }
}

/// The effect of a call on a user.
fn user_event(entry: &Entry, start: u64, user: usize) -> Option<Event<UserCall>> {
    use UserCall::{Did, Has, Is};
    let end = if matches!(entry.reply, Reply::Unknown(_)) { None } else { Some(entry.end) };
    let of = match entry.reply {
        Reply::Found(owner, _) => Some(owner),
        _ => user_of(&entry.call),
    };
    if of != Some(user) {
        return None;
    }
    let call = match (&entry.call, &entry.reply) {
        (Call::Resolve(_), Reply::Found(_, names)) => Is(Some(*names)),
        (Call::Get(_), Reply::User(names)) => Is(*names),
        (Call::Resolve(_) | Call::Get(_), _) | (_, Reply::Failed(_)) => return None,
        (call, Reply::Done(names)) => Did(call.clone(), *names),
        (call, Reply::Unknown(_)) => Did(call.clone(), None),
        (Call::Unlink(_, name) | Call::Replace(_, name, _), Reply::NotOwned) => Has(None, *name),
        (Call::Link(_, name), Reply::Taken(..)) => Has(None, *name),
        (Call::Replace(_, old, new), Reply::Taken(..)) => Has(Some(*old), *new),
        (Call::Create(..), Reply::Taken(..)) => Is(None),
        other => panic!("no answer to this call: {other:?}"),
    };
    Some(Event { call, start, end })
}
