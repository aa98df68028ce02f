//! The shares of the connections. A shard that hangs keeps the connections of the operations that
//! need it for the time of an operation: what has a share leaves the rest to others.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::client::error::Fault;

/// The shares of a pool. What remains is for look-ups, which have a short time limit.
#[derive(Clone)]
pub struct Shares {
    /// For mutations and other writes.
    pub writes: Share,
    /// For reads other than look-ups.
    pub reads: Share,
}

/// A share of the connections.
#[derive(Clone)]
pub struct Share {
    connections: Arc<Semaphore>,
    size: u32,
}

impl Shares {
    /// The shares of a pool of this size: two fifths for writes, and a quarter for reads.
    pub fn of(connections: usize) -> Self {
        let share = |part: usize| {
            let size = part.clamp(1, u32::MAX as usize);
            Share { connections: Arc::new(Semaphore::new(size)), size: size as u32 }
        };
        Self { writes: share(connections * 2 / 5), reads: share(connections / 4) }
    }
}

impl Share {
    /// Waits until the deadline for this number of connections, or for the whole share if it is
    /// smaller.
    ///
    /// # Errors
    /// [`Fault::TimedOut`].
    pub async fn take(&self, count: u32, deadline: Instant) -> Result<OwnedSemaphorePermit, Fault> {
        let acquired = self.connections.clone().acquire_many_owned(count.min(self.size));
        let permit = timeout_at(deadline, acquired).await;
        permit.ok().and_then(Result::ok).ok_or(Fault::TimedOut)
    }
}
