//! The look-ups that wait for a shared call, and the slots of the calls.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;

use crate::v1::Identifier;

pub mod group;

use group::{Caller, Group, Key, Reply};

/// The maximum calls in flight with the same options, but for stalled ones.
const MAX_IN_FLIGHT: usize = 1;
/// The maximum stalled calls with the same options.
const MAX_STALLED: usize = 8;
/// The maximum calls at once for look-ups whose shared calls have failed.
const MAX_ALONE: usize = 16;

/// The waiting look-ups, by their options.
pub struct Batches {
    queues: Arc<Queues>,
    /// The turns of look-ups whose shared calls have failed.
    pub alone: Semaphore,
}

type Queues = Mutex<HashMap<Key, Queue>>;

/// The look-ups with the same options.
#[derive(Default)]
pub struct Queue {
    pub in_flight: usize,
    pub stalled: usize,
    pub groups: VecDeque<Group>,
}

impl Default for Batches {
    fn default() -> Self {
        Self { queues: Arc::default(), alone: Semaphore::new(MAX_ALONE) }
    }
}

impl Batches {
    /// Joins the waiting look-ups. If no call is in flight, they have a slot for one.
    pub fn enter(
        &self,
        key: Key,
        identifier: Identifier,
        deadline: Instant,
        max_items: usize,
    ) -> (oneshot::Receiver<Reply>, Caller, Option<(Slot, Group)>) {
        let mut queues = self.lock();
        let queue = queues.entry(key.clone()).or_default();
        let (answer, caller) = queue.group_for(&identifier, max_items).add(identifier, deadline);
        let is_free = queue.in_flight < MAX_IN_FLIGHT;
        let first = is_free.then(|| queue.groups.pop_front()).flatten().map(|group| {
            queue.in_flight += 1;
            let kind = Kind::InFlight;
            (Slot { queues: Arc::clone(&self.queues), key, kind }, group)
        });
        (answer, caller, first)
    }

    pub fn lock(&self) -> MutexGuard<'_, HashMap<Key, Queue>> {
        lock(&self.queues)
    }
}

/// A slot among the calls with the same options. It is given up when it is dropped, also with its
/// runtime; the look-ups that wait then go alone.
pub struct Slot {
    queues: Arc<Queues>,
    pub key: Key,
    kind: Kind,
}

#[derive(PartialEq, Eq)]
enum Kind {
    InFlight,
    Stalled,
    GivenUp,
}

impl Slot {
    /// Counts the call as stalled, unless too many are. Returns its slot for the next one.
    pub fn stall(&mut self) -> Option<Self> {
        let mut queues = lock(&self.queues);
        let queue = queues.get_mut(&self.key).filter(|queue| queue.stalled < MAX_STALLED)?;
        queue.stalled += 1;
        self.kind = Kind::Stalled;
        let (queues, key) = (Arc::clone(&self.queues), self.key.clone());
        Some(Self { queues, key, kind: Kind::InFlight })
    }

    /// Whether the call is stalled, so that another has its slot.
    pub fn is_stalled(&self) -> bool {
        self.kind == Kind::Stalled
    }

    /// The next group. Without one, the slot is given up.
    pub fn next(&mut self) -> Option<Group> {
        let mut queues = lock(&self.queues);
        let group = queues.get_mut(&self.key).and_then(|queue| queue.groups.pop_front());
        if group.is_none() {
            give_up(&mut queues, &self.key, &mut self.kind);
        }
        group
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        give_up(&mut lock(&self.queues), &self.key, &mut self.kind);
    }
}

/// Counts a call as ended, and removes a queue without calls.
fn give_up(queues: &mut HashMap<Key, Queue>, key: &Key, kind: &mut Kind) {
    let Some(queue) = queues.get_mut(key) else { return };
    match std::mem::replace(kind, Kind::GivenUp) {
        Kind::InFlight => queue.in_flight -= 1,
        Kind::Stalled => queue.stalled -= 1,
        Kind::GivenUp => return,
    }
    if queue.in_flight + queue.stalled == 0 {
        queues.remove(key);
    }
}

fn lock(queues: &Queues) -> MutexGuard<'_, HashMap<Key, Queue>> {
    queues.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Queue {
    /// The last group, or a new one if it has no room.
    pub fn group_for(&mut self, identifier: &Identifier, max_items: usize) -> &mut Group {
        if !self.groups.back().is_some_and(|group| group.has_room(identifier, max_items)) {
            self.groups.push_back(Group::new());
        }
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }
}
