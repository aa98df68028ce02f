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
mod tests {
    use tokio::net::TcpListener;
    use tokio::time::sleep;

    use super::group::{MAX_BYTES, MAX_ITEMS};
    use super::*;
    use crate::{Builder, email};

    #[test]
    fn only_look_ups_that_can_share_an_answer_share_a_call() {
        let request = ResolveIdentityRequest { tenant: "a".to_owned(), ..Default::default() };
        let key = |change: fn(&mut ResolveIdentityRequest)| {
            let mut other = request.clone();
            change(&mut other);
            Key::new(other)
        };
        let same = key(|request| request.identifier = Some(email("joe@example.com")));
        assert!(same == Key::new(request.clone()));
        let changes: [fn(&mut ResolveIdentityRequest); 5] = [
            |request| request.tenant = "b".to_owned(),
            |request| request.consistency = Consistency::Eventual.into(),
            |request| request.max_staleness = Some(Default::default()),
            |request| request.show_disabled = true,
            |request| request.read_mask = Some(Default::default()),
        ];
        for change in changes {
            assert!(key(change) != same);
        }
        let linearizable = Consistency::Linearizable.into();
        assert!(!may_share(&ResolveIdentityRequest {
            consistency: linearizable,
            ..request.clone()
        }));
        assert!(!may_share(&ResolveIdentityRequest { as_of: Some(Default::default()), ..request }));
    }

    #[test]
    fn a_group_is_bounded_by_number_and_by_bytes() {
        let mut queue = Queue::default();
        for _ in 0..=MAX_ITEMS {
            let identifier = email("joe@example.com");
            drop(queue.group_for(&identifier, MAX_ITEMS).add(identifier, Instant::now()));
        }
        assert_eq!(queue.groups.len(), 2);
        queue.group_for(&email("x".repeat(MAX_BYTES)), MAX_ITEMS);
        assert_eq!(queue.groups.len(), 3);
        queue.group_for(&email("joe@example.com"), 0);
        assert_eq!(queue.groups.len(), 4);
    }

    /// A client of a server that accepts connections and never answers.
    async fn unanswered() -> (TcpListener, Client) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let builder = Builder::new(format!("http://{address}")).timeout(Duration::from_secs(3_600));
        (listener, builder.connect_lazy().unwrap())
    }

    /// Makes ten look-ups until the client's queues are as wanted.
    async fn look_up_until(client: &Client, is_reached: impl Fn(&HashMap<Key, Queue>) -> bool) {
        let call = async |n: usize| client.resolve(email(format!("user{n}@example.com"))).await;
        let calls = futures_util::future::join_all((0..10).map(call));
        tokio::select! {
            _ = calls => panic!("the server does not answer"),
            () = reached(client, is_reached) => {}
        }
    }

    async fn reached(client: &Client, is_reached: impl Fn(&HashMap<Key, Queue>) -> bool) {
        let queues = &client.batches().unwrap().queues;
        let wait = async {
            while !is_reached(&lock(queues)) {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(30), wait).await.unwrap();
    }

    #[tokio::test]
    async fn a_call_whose_callers_have_all_left_ends() {
        let (_listener, client) = unanswered().await;
        look_up_until(&client, |queues| !queues.is_empty()).await;
        reached(&client, HashMap::is_empty).await;
    }

    #[tokio::test]
    async fn look_ups_do_not_wait_for_a_stalled_call() {
        let (_listener, client) = unanswered().await;
        let are_sent = |queue: &Queue| queue.stalled > 0 && queue.groups.is_empty();
        look_up_until(&client, |queues| queues.values().any(are_sent)).await;
        reached(&client, HashMap::is_empty).await;
    }
}
