//! Look-ups that go together in one call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use prost::Message;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::error::Error;
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
    pub fn request(&self, identifiers: Vec<Identifier>) -> BatchResolveIdentitiesRequest {
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

    pub fn single(&self, identifier: Identifier) -> ResolveIdentityRequest {
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
    pub items: Vec<Item>,
    bytes: usize,
    pub callers: Arc<Callers>,
}

/// A look-up of a group.
pub struct Item {
    pub identifier: Identifier,
    pub deadline: Instant,
    pub reply: oneshot::Sender<Reply>,
}

/// The callers of a group.
#[derive(Default)]
pub struct Callers {
    /// The number of those who still wait.
    count: AtomicUsize,
    none: Notify,
    /// Whether one of them has the call for itself.
    is_single: AtomicBool,
}

impl Callers {
    /// Notes with how many look-ups the call begins.
    pub fn begin(&self, count: usize) {
        self.is_single.store(count == 1, Ordering::Release);
    }

    /// Returns once all have left.
    pub async fn have_left(&self) {
        // A notice may be that of callers who left before others came.
        while self.count.load(Ordering::Acquire) > 0 {
            self.none.notified().await;
        }
    }
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
        Self { items: Vec::new(), bytes: 0, callers: Arc::default() }
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
        self.items.push(Item { identifier, deadline, reply });
        self.callers.count.fetch_add(1, Ordering::AcqRel);
        (answer, Caller(Arc::clone(&self.callers)))
    }
}

fn bytes(identifier: &Identifier) -> usize {
    identifier.encoded_len() + ITEM_BYTES
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_caller_who_left_before_others_came_ends_no_call() {
        let mut group = Group::new();
        drop(group.add(Identifier::default(), Instant::now()));
        let (_answer, caller) = group.add(Identifier::default(), Instant::now());
        assert_eq!(group.callers.have_left().now_or_never(), None);
        drop(caller);
        assert_eq!(group.callers.have_left().now_or_never(), Some(()));
    }
}
