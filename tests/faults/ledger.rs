//! What all callers did and were told, in order, and whether one store could have told them so: the history of each name
//! and of each user must be that of calls that happened one after the other; where users are merged, of each [`group`]. What was acknowledged must show from then
//! on, what failed must never show, and what nobody knows may show as a whole, at any time, or never.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use super::audit::State;
use super::caller::{Call, Names, Told};
use super::group;
use crate::linear::{Event, Model, check};

/// A call and its answer.
#[derive(Clone, Debug)]
pub struct Entry {
    pub call: Call,
    pub told: Told,
    /// Numbers that grow with time, for the order of calls.
    pub start: u64,
    pub end: u64,
    /// When it was answered, and after how long; where it was repeated, how long the longest of these took.
    pub at: Instant,
    pub took: Duration,
}

/// The moment at which a call is sent.
pub struct Start {
    clock: u64,
    sent: Instant,
    longest: Duration,
}

impl Start {
    /// The call was answered, and is repeated.
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
}

/// How many calls there were, and how they ended.
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
            "{look_ups} look-ups and {mutations} mutations, of which {refused} were refused by the rules, {failed} failed \
             and {unknown} ended unknown"
        )
    }
}

impl Ledger {
    pub fn start(&self) -> Start {
        Start { clock: self.clock.fetch_add(1, SeqCst), sent: Instant::now(), longest: Duration::ZERO }
    }

    pub fn add(&self, call: &Call, told: Told, start: &Start) {
        let end = self.clock.fetch_add(1, SeqCst);
        let (start, at, took) = (start.clock, Instant::now(), start.longest());
        self.entries.lock().unwrap().push(Entry { call: call.clone(), told, start, end, at, took });
    }

    /// How many calls have ended.
    pub fn len(&self) -> usize {
        self.entries.lock().unwrap().len()
    }

    /// How many look-ups (or mutations) were answered since an instant.
    pub fn answered(&self, reads: bool, since: Instant) -> usize {
        let entries = self.entries.lock().unwrap();
        let answered = |entry: &&Entry| entry.call.is_read() == reads && entry.told.is_answer() && entry.at >= since;
        entries.iter().filter(answered).count()
    }

    pub fn count(&self) -> Count {
        let mut count = Count::default();
        for Entry { call, told, .. } in self.entries.lock().unwrap().iter() {
            *(if call.is_read() { &mut count.look_ups } else { &mut count.mutations }) += 1;
            match told {
                Told::Taken(..) | Told::NotOwned | Told::Merged(..) | Told::NotMerged => count.refused += 1,
                Told::Failed(_) => count.failed += 1,
                Told::Unknown(_) => count.unknown += 1,
                Told::Done(_) | Told::Found(..) | Told::Nobody | Told::User(_) | Told::Part(..) => {}
            }
        }
        count
    }

    /// The longest time in which no look-up (or no mutation) was answered while callers made them, and the longest that one
    /// call took.
    pub fn silence(&self, reads: bool, since: Instant) -> (Duration, Duration) {
        let entries = self.entries.lock().unwrap();
        let of_kind = || entries.iter().filter(|entry| entry.call.is_read() == reads && entry.at >= since);
        let mut answered: Vec<Instant> =
            of_kind().filter(|entry| entry.told.is_answer()).map(|entry| entry.at).collect();
        answered.push(since);
        answered.extend(of_kind().map(|entry| entry.at).max());
        answered.sort_unstable();
        let gap = answered.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
        (gap, of_kind().map(|entry| entry.took).max().unwrap_or_default())
    }

    /// Why calls failed, each reason once.
    pub fn reasons(&self) -> BTreeSet<String> {
        let entries = self.entries.lock().unwrap();
        let reason = |entry: &Entry| match &entry.told {
            Told::Failed(reason) => Some(format!("failed: {reason}")),
            Told::Unknown(reason) => Some(format!("unknown: {reason}")),
            _ => None,
        };
        entries.iter().filter_map(reason).collect()
    }

    /// The users that calls were about.
    pub fn users(&self) -> BTreeSet<usize> {
        self.entries.lock().unwrap().iter().filter_map(|entry| user_of(&entry.call)).collect()
    }

    /// Fails unless everything that was told could have been told by one store that was `before` at first and is `after`
    /// now.
    pub fn check(&self, before: &State, after: &State) {
        let (users, entries) = (self.users(), self.entries.lock().unwrap());
        let now = self.clock.load(SeqCst);
        if entries.iter().any(|entry| matches!(entry.call, Call::Merge(..))) {
            return group::check_all(&entries, now, before, after);
        }
        let last = now..now + 1;
        for name in 0..64 {
            let mut events: Vec<_> = entries.iter().flat_map(|entry| name_events(entry, name)).collect();
            let owner = |state: &State| state.owners.get(&name).copied();
            events.push(Event { call: NameCall::Is(owner(after)), start: last.start, end: Some(last.end) });
            let outcome = check::<Name>(owner(before), events);
            outcome.unwrap_or_else(|why| panic!("name {name} has an impossible history: {why}"));
        }
        assert!(after.users.keys().all(|user| users.contains(user) || before.users.contains_key(user)), "strangers");
        for user in users {
            let mut events: Vec<_> = entries.iter().filter_map(|entry| user_event(entry, user)).collect();
            let call = UserCall::Is(after.users.get(&user).copied());
            events.push(Event { call, start: last.start, end: Some(last.end) });
            let outcome = check::<User>(before.users.get(&user).copied(), events);
            outcome.unwrap_or_else(|why| panic!("user {user} has an impossible history: {why}"));
        }
    }
}

/// Who owns one name.
struct Name;

#[derive(Clone, Debug)]
enum NameCall {
    /// By this user, who has it already or to whom nobody was in the way.
    Take(usize),
    /// By this user, who had it.
    Release(usize),
    /// This user does not have it.
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

/// What a call says of a name.
fn name_events(entry: &Entry, name: usize) -> Vec<Event<NameCall>> {
    use NameCall::{Is, Lacks, Release, Take};
    let end = if matches!(entry.told, Told::Unknown(_)) { None } else { Some(entry.end) };
    let said: Vec<(usize, NameCall)> = match (&entry.call, &entry.told) {
        (_, Told::Failed(_)) => Vec::new(),
        (Call::Create(user, names), Told::Done(_) | Told::Unknown(_)) => {
            names.iter().map(|name| (*name, Take(*user))).collect()
        }
        (Call::Link(user, name), Told::Done(_) | Told::Unknown(_)) => vec![(*name, Take(*user))],
        (Call::Unlink(user, name), Told::Done(_) | Told::Unknown(_)) => vec![(*name, Release(*user))],
        (Call::Unlink(user, name) | Call::Replace(user, name, _), Told::NotOwned) => vec![(*name, Lacks(*user))],
        (Call::Replace(user, old, new), Told::Done(_) | Told::Unknown(_)) => {
            vec![(*old, Release(*user)), (*new, Take(*user))]
        }
        (Call::Replace(user, old, _), Told::Taken(new, owner)) => {
            vec![(*old, Is(Some(*user))), (*new, Is(Some(*owner)))]
        }
        (_, Told::Taken(name, owner)) => vec![(*name, Is(Some(*owner)))],
        (Call::Resolve(name), Told::Found(owner, _)) => vec![(*name, Is(Some(*owner)))],
        (Call::Resolve(name), Told::Nobody) => vec![(*name, Is(None))],
        (Call::Resolve(_) | Call::Get(_), _) => Vec::new(),
        other => panic!("no answer to this call: {other:?}"),
    };
    let here = said.into_iter().filter(|(of, _)| *of == name);
    here.map(|(_, call)| Event { call, start: entry.start, end }).collect()
}

/// What one user lists, if there is such a user.
struct User;

#[derive(Clone, Debug)]
enum UserCall {
    /// The call is carried out; the answer lists these.
    Did(Call, Option<Names>),
    /// The first is listed, if there is a first, and the second is not.
    Has(Option<usize>, usize),
    Is(Option<Names>),
}

impl Model for User {
    type State = Option<Names>;
    type Call = UserCall;

    fn step(listed: &Option<Names>, call: &UserCall) -> Option<Option<Names>> {
        match call {
            UserCall::Did(call, told) => {
                let after = changed(*listed, call)?;
                told.is_none_or(|told| told == after).then_some(Some(after))
            }
            UserCall::Has(first, second) => {
                let names = (*listed)?;
                (first.is_none_or(|first| names.has(first)) && !names.has(*second)).then_some(*listed)
            }
            UserCall::Is(other) => (listed == other).then_some(*listed),
        }
    }

    fn is_read(call: &UserCall) -> bool {
        matches!(call, UserCall::Has(..) | UserCall::Is(_))
    }
}

/// What a user lists after a call, which must be able to happen.
fn changed(listed: Option<Names>, call: &Call) -> Option<Names> {
    match (call, listed) {
        (Call::Create(_, names), None) => Some(names.iter().copied().collect()),
        (Call::Link(_, name), Some(names)) => Some(names.with(*name)),
        (Call::Unlink(_, name), Some(names)) => names.has(*name).then(|| names.without(*name)),
        (Call::Replace(_, old, new), Some(names)) => names.has(*old).then(|| names.without(*old).with(*new)),
        _ => None,
    }
}

fn user_of(call: &Call) -> Option<usize> {
    match call {
        Call::Create(user, _) | Call::Link(user, _) | Call::Unlink(user, _) | Call::Replace(user, ..) => Some(*user),
        Call::Merge(user, _) | Call::Unmerge(user, _) | Call::Get(user) => Some(*user),
        Call::Resolve(_) => None,
    }
}

/// What a call says of a user.
fn user_event(entry: &Entry, user: usize) -> Option<Event<UserCall>> {
    use UserCall::{Did, Has, Is};
    let end = if matches!(entry.told, Told::Unknown(_)) { None } else { Some(entry.end) };
    let of = match entry.told {
        Told::Found(owner, _) => Some(owner),
        _ => user_of(&entry.call),
    };
    if of != Some(user) {
        return None;
    }
    let call = match (&entry.call, &entry.told) {
        (Call::Resolve(_), Told::Found(_, names)) => Is(Some(*names)),
        (Call::Get(_), Told::User(names)) => Is(*names),
        (Call::Resolve(_) | Call::Get(_), _) | (_, Told::Failed(_)) => return None,
        (call, Told::Done(names)) => Did(call.clone(), *names),
        (call, Told::Unknown(_)) => Did(call.clone(), None),
        (Call::Unlink(_, name) | Call::Replace(_, name, _), Told::NotOwned) => Has(None, *name),
        (Call::Link(_, name), Told::Taken(..)) => Has(None, *name),
        (Call::Replace(_, old, new), Told::Taken(..)) => Has(Some(*old), *new),
        (Call::Create(..), Told::Taken(..)) => Is(None),
        other => panic!("no answer to this call: {other:?}"),
    };
    Some(Event { call, start: entry.start, end })
}
