//! Concurrent look-ups share calls. A look-up goes at once if no call is in flight. Those that come
//! meanwhile wait until the call returns or stalls, and go together.

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::attempts::delay;
use crate::client::Client;
use crate::error::Error;
use crate::v1::{Consistency, Identifier, ResolveIdentityRequest};

pub mod group;

use group::{Answer, Caller, Group, Key, Reply};

/// The maximum calls in flight with the same options, but for stalled ones.
const MAX_IN_FLIGHT: usize = 1;
/// The time after which a call is stalled: others with the same options do not wait for it.
const STALL_TIMEOUT: Duration = Duration::from_millis(100);
/// The maximum stalled calls with the same options.
const MAX_STALLED: usize = 8;
/// The maximum calls at once for look-ups whose shared calls have failed.
const MAX_ALONE: usize = 16;

/// Whether a look-up can share a call. Linearizable look-ups and those of the past cannot.
pub fn may_share(request: &ResolveIdentityRequest) -> bool {
    request.consistency != Consistency::Linearizable as i32 && request.as_of.is_none()
}

/// The waiting look-ups, by their options.
pub struct Batches {
    queues: Arc<Queues>,
    /// The turns of look-ups whose shared calls have failed.
    alone: Semaphore,
}

type Queues = Mutex<HashMap<Key, Queue>>;

#[derive(Default)]
struct Queue {
    in_flight: usize,
    stalled: usize,
    groups: VecDeque<Group>,
}

impl Default for Batches {
    fn default() -> Self {
        Self { queues: Arc::default(), alone: Semaphore::new(MAX_ALONE) }
    }
}

impl Batches {
    /// Resolves an identifier, alone or with others.
    pub async fn resolve(&self, client: &Client, mut request: ResolveIdentityRequest) -> Answer {
        if request.tenant.is_empty() {
            client.tenant().clone_into(&mut request.tenant);
        }
        let (now, deadline) = (Instant::now(), client.deadline(None));
        let single = request.clone();
        let identifier = request.identifier.take().unwrap_or_default();
        let (mut answer, caller) = self.enter(client, Key::new(request), identifier, deadline);
        // What is left of the time must suffice for a call of its own.
        let mut reply = timeout_at(now + (deadline - now) / 2, &mut answer).await;
        if reply.is_err() && caller.is_single() {
            reply = timeout_at(deadline, answer).await;
        }
        drop(caller);
        match reply {
            Ok(Ok(Reply::Answer(answer))) => answer,
            Ok(Ok(Reply::Again(error))) => self.again(client, single, deadline, error).await,
            // The task of a shared call ends without a reply if its runtime does.
            Ok(Ok(Reply::TooLarge) | Err(_)) | Err(_) => self.alone(client, single, deadline).await,
        }
    }

    /// Resolves an identifier after a shared call has failed, which was its first attempt.
    async fn again(
        &self,
        client: &Client,
        request: ResolveIdentityRequest,
        deadline: Instant,
        error: Error,
    ) -> Answer {
        let (rules, delay) = (client.rules(), delay(&error, 1));
        if rules.max <= 1 || !rules.budget.allows() || Instant::now() + delay >= deadline {
            return Err(error);
        }
        sleep(delay).await;
        self.alone(&client.after_attempts(1), request, deadline).await
    }

    /// Resolves an identifier by a call of its own, once it has a turn.
    async fn alone(
        &self,
        client: &Client,
        request: ResolveIdentityRequest,
        deadline: Instant,
    ) -> Answer {
        let Ok(_turn) = timeout_at(deadline, self.alone.acquire()).await else {
            return Err(Error::deadline());
        };
        let left = deadline.saturating_duration_since(Instant::now());
        client.with_timeout(left).directory().resolve_identity(request).await
    }

    /// Joins the waiting look-ups, and sends them if no call is in flight.
    fn enter(
        &self,
        client: &Client,
        key: Key,
        identifier: Identifier,
        deadline: Instant,
    ) -> (oneshot::Receiver<Reply>, Caller) {
        let mut queues = lock(&self.queues);
        let queue = queues.entry(key.clone()).or_default();
        let entered = queue.group_for(&identifier, client.max_items()).add(identifier, deadline);
        if queue.in_flight < MAX_IN_FLIGHT
            && let Some(group) = queue.groups.pop_front()
        {
            queue.in_flight += 1;
            drop(queues);
            let place = Place { queues: Arc::clone(&self.queues), key, kind: Kind::InFlight };
            start(place, client.clone(), group);
        }
        entered
    }
}

/// A place among the calls with the same options. It is given up when it is dropped, also with its
/// runtime; the look-ups that wait then go alone.
struct Place {
    queues: Arc<Queues>,
    key: Key,
    kind: Kind,
}

#[derive(PartialEq, Eq)]
enum Kind {
    InFlight,
    Stalled,
    GivenUp,
}

/// Sends a group in a task of its own, and the next one once it has returned or stalls.
fn start(mut place: Place, client: Client, group: Group) {
    tokio::spawn(async move {
        let key = place.key.clone();
        let mut sent = pin!(group.send(&client, &key));
        if timeout(STALL_TIMEOUT, &mut sent).await.is_err() {
            if let Some(next) = place.stall() {
                start_next(next, client.clone());
            }
            sent.await;
        }
        if place.kind == Kind::InFlight {
            start_next(place, client.clone());
        }
    });
}

/// Starts the next group in place of one that has returned or stalls.
fn start_next(mut place: Place, client: Client) {
    if let Some(group) = place.next() {
        start(place, client, group);
    }
}

impl Place {
    /// Counts the call as stalled, unless too many are. Returns its place for the next one.
    fn stall(&mut self) -> Option<Self> {
        let mut queues = lock(&self.queues);
        let queue = queues.get_mut(&self.key).filter(|queue| queue.stalled < MAX_STALLED)?;
        queue.stalled += 1;
        self.kind = Kind::Stalled;
        let (queues, key) = (Arc::clone(&self.queues), self.key.clone());
        Some(Self { queues, key, kind: Kind::InFlight })
    }

    /// The next group. Without one, the place is given up.
    fn next(&mut self) -> Option<Group> {
        let mut queues = lock(&self.queues);
        let group = queues.get_mut(&self.key).and_then(|queue| queue.groups.pop_front());
        if group.is_none() {
            give_up(&mut queues, &self.key, &mut self.kind);
        }
        group
    }
}

impl Drop for Place {
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
    fn group_for(&mut self, identifier: &Identifier, max_items: usize) -> &mut Group {
        if !self.groups.back().is_some_and(|group| group.has_room(identifier, max_items)) {
            self.groups.push_back(Group::new());
        }
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }
}

#[cfg(test)]
mod tests;
