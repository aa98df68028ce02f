//! Concurrent look-ups share calls. A look-up goes at once if no call is in flight. Those that come
//! meanwhile wait until the call returns or stalls, and go together.

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prost::Message;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout, timeout_at};
use tonic::Code;

use crate::client::Client;
use crate::error::Error;
use crate::v1::batch_resolve_identities_response::{Found, Result as Item, result::Outcome};
use crate::v1::{
    BatchResolveIdentitiesRequest, Consistency, Identifier, ResolveIdentityRequest,
    ResolveIdentityResponse,
};

/// The maximum identifiers and bytes of one call.
pub const MAX_ITEMS: usize = 1_000;
pub const MAX_BYTES: usize = 900 << 10;
/// The bytes of an item beyond its identifier: tag and length.
pub const ITEM_BYTES: usize = 8;
/// The maximum calls in flight with the same options, but for stalled ones.
const MAX_IN_FLIGHT: usize = 1;
/// The time after which a call is stalled: others with the same options do not wait for it.
const STALL_TIMEOUT: Duration = Duration::from_millis(100);
/// The maximum stalled calls with the same options.
const MAX_STALLED: usize = 8;

type Answer = Result<ResolveIdentityResponse, Error>;

/// The outcome of a shared call for one caller; none if a call of its own may succeed.
type Reply = Option<Answer>;

/// Whether a look-up can share a call. Linearizable look-ups and those of the past cannot.
pub fn may_share(request: &ResolveIdentityRequest) -> bool {
    request.consistency != Consistency::Linearizable as i32 && request.as_of.is_none()
}

/// The waiting look-ups, by their options.
#[derive(Default)]
pub struct Batches(Arc<Queues>);

type Queues = Mutex<HashMap<Key, Queue>>;

/// The options of a look-up. Look-ups with equal options share a call.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    tenant: String,
    consistency: i32,
    max_staleness: Option<(i64, i32)>,
    show_disabled: bool,
    fields: Option<Vec<String>>,
}

#[derive(Default)]
struct Queue {
    in_flight: usize,
    stalled: usize,
    groups: VecDeque<Group>,
}

/// Look-ups that go together.
struct Group {
    identifiers: Vec<Identifier>,
    replies: Vec<oneshot::Sender<Reply>>,
    bytes: usize,
    deadline: Instant,
    callers: Arc<Callers>,
}

/// The number of a group's callers who still wait.
#[derive(Default)]
struct Callers {
    count: AtomicUsize,
    none: Notify,
}

/// A caller who still waits.
struct Caller(Arc<Callers>);

impl Drop for Caller {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.none.notify_one();
        }
    }
}

impl Batches {
    /// Resolves an identifier, alone or with others.
    pub async fn resolve(&self, client: &Client, mut request: ResolveIdentityRequest) -> Answer {
        if request.tenant.is_empty() {
            client.tenant().clone_into(&mut request.tenant);
        }
        let deadline = Instant::now() + client.timeout();
        let single = request.clone();
        let identifier = request.identifier.take().unwrap_or_default();
        let (answer, _caller) = self.enter(client, Key::new(request), identifier, deadline);
        match timeout_at(deadline, answer).await {
            Err(_) => Err(Error::deadline()),
            Ok(Ok(Some(answer))) => answer,
            // The task of a shared call ends without an answer if its runtime does.
            Ok(Ok(None) | Err(_)) => {
                let left = deadline.saturating_duration_since(Instant::now());
                client.with_timeout(left).directory().resolve_identity(single).await
            }
        }
    }

    /// Joins the waiting look-ups, and sends them if no call is in flight.
    fn enter(
        &self,
        client: &Client,
        key: Key,
        identifier: Identifier,
        deadline: Instant,
    ) -> (oneshot::Receiver<Reply>, Caller) {
        let (reply, answer) = oneshot::channel();
        let mut queues = lock(&self.0);
        let queue = queues.entry(key.clone()).or_default();
        let bytes = identifier.encoded_len() + ITEM_BYTES;
        let caller = queue.group_for(bytes).add(identifier, reply, bytes, deadline);
        if queue.in_flight < MAX_IN_FLIGHT
            && let Some(group) = queue.groups.pop_front()
        {
            queue.in_flight += 1;
            drop(queues);
            start(Arc::clone(&self.0), client.clone(), key, group);
        }
        (answer, caller)
    }
}

/// Sends a group in a task of its own, and the next one once it has returned or stalls.
fn start(queues: Arc<Queues>, client: Client, key: Key, group: Group) {
    tokio::spawn(async move {
        let mut sent = pin!(group.send(&client, &key));
        if timeout(STALL_TIMEOUT, &mut sent).await.is_err() {
            let is_released = lock(&queues).get_mut(&key).is_some_and(Queue::release_stalled);
            if is_released {
                start_next(&queues, &client, &key);
                sent.await;
                return end(&queues, &key, |queue| queue.stalled -= 1);
            }
            sent.await;
        }
        start_next(&queues, &client, &key);
    });
}

/// Starts the next group in place of one that has returned or stalls.
fn start_next(queues: &Arc<Queues>, client: &Client, key: &Key) {
    let next = lock(queues).get_mut(key).and_then(|queue| queue.groups.pop_front());
    match next {
        Some(group) => start(Arc::clone(queues), client.clone(), key.clone(), group),
        None => end(queues, key, |queue| queue.in_flight -= 1),
    }
}

/// Counts a call as ended, and removes a queue without calls.
fn end(queues: &Queues, key: &Key, count: impl FnOnce(&mut Queue)) {
    let mut queues = lock(queues);
    let Some(queue) = queues.get_mut(key) else { return };
    count(queue);
    if queue.in_flight + queue.stalled == 0 {
        queues.remove(key);
    }
}

fn lock(queues: &Queues) -> MutexGuard<'_, HashMap<Key, Queue>> {
    queues.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Key {
    fn new(request: ResolveIdentityRequest) -> Self {
        Self {
            tenant: request.tenant,
            consistency: request.consistency,
            max_staleness: request.max_staleness.map(|age| (age.seconds, age.nanos)),
            show_disabled: request.show_disabled,
            fields: request.read_mask.map(|mask| mask.paths),
        }
    }

    /// The request of these identifiers.
    fn request(&self, identifiers: Vec<Identifier>) -> BatchResolveIdentitiesRequest {
        let duration = |(seconds, nanos)| prost_types::Duration { seconds, nanos };
        BatchResolveIdentitiesRequest {
            tenant: self.tenant.clone(),
            identifiers,
            consistency: self.consistency,
            max_staleness: self.max_staleness.map(duration),
            show_disabled: self.show_disabled,
            read_mask: self.fields.clone().map(|paths| prost_types::FieldMask { paths }),
            as_of: None,
        }
    }

    fn single(&self, identifier: Identifier) -> ResolveIdentityRequest {
        let request = self.request(Vec::new());
        ResolveIdentityRequest {
            tenant: request.tenant,
            identifier: Some(identifier),
            consistency: request.consistency,
            max_staleness: request.max_staleness,
            show_disabled: request.show_disabled,
            read_mask: request.read_mask,
            as_of: None,
        }
    }
}

impl Queue {
    /// Counts a call in flight as stalled, unless too many are. The caller starts the next one.
    const fn release_stalled(&mut self) -> bool {
        let is_released = self.stalled < MAX_STALLED;
        self.stalled += is_released as usize;
        is_released
    }

    /// The last group, or a new one if it has no room for `bytes`.
    fn group_for(&mut self, bytes: usize) -> &mut Group {
        let has_room =
            |group: &Group| group.identifiers.len() < MAX_ITEMS && group.bytes + bytes <= MAX_BYTES;
        if !self.groups.back().is_some_and(has_room) {
            self.groups.push_back(Group::new());
        }
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }
}

impl Group {
    fn new() -> Self {
        Self {
            identifiers: Vec::new(),
            replies: Vec::new(),
            bytes: 0,
            deadline: Instant::now(),
            callers: Arc::default(),
        }
    }

    fn add(
        &mut self,
        identifier: Identifier,
        reply: oneshot::Sender<Reply>,
        bytes: usize,
        deadline: Instant,
    ) -> Caller {
        self.identifiers.push(identifier);
        self.replies.push(reply);
        self.bytes += bytes;
        self.deadline = self.deadline.max(deadline);
        self.callers.count.fetch_add(1, Ordering::AcqRel);
        Caller(Arc::clone(&self.callers))
    }

    /// Calls the server until the latest deadline, or until all callers have left.
    async fn send(mut self, client: &Client, key: &Key) {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let directory = client.with_timeout(left).directory();
        let identifiers = std::mem::take(&mut self.identifiers);
        let callers = Arc::clone(&self.callers);
        let call = async {
            match <[Identifier; 1]>::try_from(identifiers) {
                Ok([identifier]) => {
                    vec![Some(directory.resolve_identity(key.single(identifier)).await)]
                }
                Err(identifiers) => {
                    let count = identifiers.len();
                    let answer = directory.batch_resolve_identities(key.request(identifiers)).await;
                    match answer {
                        Ok(answer) => answer.results.into_iter().map(of_item).collect(),
                        Err(error) => (0..count).map(|_| Some(Err(error.clone()))).collect(),
                    }
                }
            }
        };
        tokio::select! {
            answers = call => {
                for (reply, answer) in self.replies.into_iter().zip(answers) {
                    // A caller who has left needs no answer.
                    let _ = reply.send(answer);
                }
            }
            () = callers.none.notified() => {}
        }
    }
}

/// The answer of an item as that of a call of its own.
fn of_item(item: Item) -> Reply {
    match found(item) {
        Ok(Found { user, identity }) => Some(Ok(ResolveIdentityResponse { user, identity })),
        Err(error) if matches!(error.code(), Code::ResourceExhausted | Code::Unavailable) => None,
        Err(error) => Some(Err(error)),
    }
}

/// The user of an item.
pub fn found(item: Item) -> Result<Found, Error> {
    match item.outcome {
        Some(Outcome::Found(found)) => Ok(found),
        Some(Outcome::Error(status)) => Err(Error::of_item(status)),
        None => Err(tonic::Status::internal("the answer lacks an item").into()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tokio::time::sleep;

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
            let (reply, _answer) = oneshot::channel();
            let identifier = email("joe@example.com");
            drop(queue.group_for(25).add(identifier, reply, 25, Instant::now()));
        }
        assert_eq!(queue.groups.len(), 2);
        queue.group_for(MAX_BYTES);
        assert_eq!(queue.groups.len(), 3);
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
        let queues = &client.batches().unwrap().0;
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
