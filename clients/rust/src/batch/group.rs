//! Look-ups that go together in one call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::future::join_all;
use prost::Message;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::attempts::is_retryable;
use crate::client::Client;
use crate::error::Error;
use crate::reasons::{ANSWER_TOO_LARGE, USER_TOO_LARGE};
use crate::v1::batch_resolve_identities_response::{self as batch, Found, result::Outcome};
use crate::v1::{
    BatchResolveIdentitiesRequest, Identifier, ResolveIdentityRequest, ResolveIdentityResponse,
};

/// The maximum identifiers and bytes of one call.
pub const MAX_ITEMS: usize = 1_000;
pub const MAX_BYTES: usize = 900 << 10;
/// The bytes of an item beyond its identifier: tag and length.
pub const ITEM_BYTES: usize = 8;

pub type Answer = Result<ResolveIdentityResponse, Error>;

/// The outcome of a shared call for one caller.
#[expect(clippy::large_enum_variant, reason = "most replies are answers")]
pub enum Reply {
    Answer(Answer),
    /// The call failed, or refused the item: a call of its own may succeed after a delay.
    Again(Error),
    /// The item did not fit into the answer.
    TooLarge,
}

/// The options of a look-up. Look-ups with equal options share a call.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    tenant: String,
    consistency: i32,
    max_staleness: Option<(i64, i32)>,
    show_disabled: bool,
    fields: Option<Vec<String>>,
}

impl Key {
    pub fn new(request: ResolveIdentityRequest) -> Self {
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

/// Look-ups that go together.
pub struct Group {
    items: Vec<Item>,
    bytes: usize,
    deadline: Instant,
    callers: Arc<Callers>,
}

struct Item {
    identifier: Identifier,
    reply: oneshot::Sender<Reply>,
}

/// The callers of a group.
#[derive(Default)]
struct Callers {
    /// The number of those who still wait.
    count: AtomicUsize,
    none: Notify,
    /// Whether one of them has the call for itself.
    is_single: AtomicBool,
}

/// A caller who still waits.
pub struct Caller(Arc<Callers>);

impl Caller {
    /// Whether the caller shares its call with nobody.
    pub fn is_single(&self) -> bool {
        self.0.is_single.load(Ordering::Acquire)
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.none.notify_one();
        }
    }
}

impl Group {
    pub fn new() -> Self {
        let (items, deadline) = (Vec::new(), Instant::now());
        Self { items, bytes: 0, deadline, callers: Arc::default() }
    }

    /// Whether an identifier fits.
    pub fn has_room(&self, identifier: &Identifier, max_items: usize) -> bool {
        self.items.len() < max_items && self.bytes + bytes(identifier) <= MAX_BYTES
    }

    pub fn add(
        &mut self,
        identifier: Identifier,
        deadline: Instant,
    ) -> (oneshot::Receiver<Reply>, Caller) {
        let (reply, answer) = oneshot::channel();
        self.bytes += bytes(&identifier);
        self.items.push(Item { identifier, reply });
        self.deadline = self.deadline.max(deadline);
        self.callers.count.fetch_add(1, Ordering::AcqRel);
        (answer, Caller(Arc::clone(&self.callers)))
    }

    /// Calls the server until the latest deadline, or until all callers have left.
    pub async fn send(self, client: &Client, key: &Key) {
        let Self { mut items, deadline, callers, .. } = self;
        items.retain(|item| !item.reply.is_closed());
        callers.is_single.store(items.len() == 1, Ordering::Release);
        let left = deadline.saturating_duration_since(Instant::now());
        let client = client.with_timeout(left);
        let call = async {
            match <[Item; 1]>::try_from(items) {
                Ok([item]) => ask_single(&client, key, item).await,
                Err(items) => ask(&client, key, items).await,
            }
        };
        tokio::select! {
            () = call => {}
            () = callers.none.notified() => {}
        }
    }
}

fn bytes(identifier: &Identifier) -> usize {
    identifier.encoded_len() + ITEM_BYTES
}

async fn ask_single(client: &Client, key: &Key, item: Item) {
    let answer = client.directory().resolve_identity(key.single(item.identifier)).await;
    // A caller who has left needs no answer.
    let _ = item.reply.send(Reply::Answer(answer));
}

/// Asks for all in one request, or in several if the server takes fewer at once.
async fn ask(client: &Client, key: &Key, mut items: Vec<Item>) {
    while !items.is_empty() {
        let mut requests = Vec::new();
        while !items.is_empty() {
            let rest = items.len().saturating_sub(client.max_items());
            requests.push(items.split_off(rest));
        }
        let asked = requests.into_iter().map(|items| ask_once(client, key, items));
        items = join_all(asked).await.into_iter().flatten().collect();
    }
}

/// Makes one attempt. Returns the items if they were too many.
async fn ask_once(client: &Client, key: &Key, items: Vec<Item>) -> Vec<Item> {
    let request = key.request(items.iter().map(|item| item.identifier.clone()).collect());
    let replies: Vec<Reply> =
        match client.once().directory().batch_resolve_identities(request).await {
            Ok(answer) => answer.results.into_iter().map(reply_of_item).collect(),
            Err(error) if client.learn_limit(&error, items.len()) => return items,
            Err(error) => items.iter().map(|_| reply_of_error(error.clone())).collect(),
        };
    for (item, reply) in items.into_iter().zip(replies) {
        // A caller who has left needs no answer.
        let _ = item.reply.send(reply);
    }
    Vec::new()
}

/// The answer of an item as that of a call of its own.
fn reply_of_item(item: batch::Result) -> Reply {
    match found(item) {
        Ok(Found { user, identity }) => {
            Reply::Answer(Ok(ResolveIdentityResponse { user, identity }))
        }
        Err(error) if [ANSWER_TOO_LARGE, USER_TOO_LARGE].contains(&error.reason()) => {
            Reply::TooLarge
        }
        Err(error) => reply_of_error(error),
    }
}

fn reply_of_error(error: Error) -> Reply {
    // The attempts of a call that the server did not see have lasted until its deadline.
    match is_retryable(&error) && !error.is_never_sent() {
        true => Reply::Again(error),
        false => Reply::Answer(Err(error)),
    }
}

/// The user of an item.
pub fn found(item: batch::Result) -> Result<Found, Error> {
    match item.outcome {
        Some(Outcome::Found(found)) => Ok(found),
        Some(Outcome::Error(status)) => Err(Error::of_item(status)),
        None => Err(tonic::Status::internal("the answer lacks an item").into()),
    }
}
