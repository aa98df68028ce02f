//! The bytes that connections reserve: partial messages, and answers that clients have not read.
//! Nothing here waits or locks. A reservation beyond a limit is refused.
//!
//! Each connection is guaranteed some bytes. Beyond those, its caller has a share of the bytes that
//! all connections share: a client that does not read uses up its own. A connection without a
//! caller so far has the guaranteed bytes alone.

use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use polynym_access::{Caller, CallerState};

/// The bytes that every connection may reserve, whatever others do.
pub(super) const GUARANTEED_BYTES: usize = 64 << 10;
/// The maximum bytes of one connection: many full answers to batches.
pub(super) const MAX_CONNECTION_BYTES: usize = 16 << 20;
/// The maximum bytes of all connections together, beyond the guaranteed ones.
pub(super) const MAX_SHARED_BYTES: isize = 32 << 20;

/// The bytes that all connections have reserved beyond the guaranteed ones.
#[derive(Debug, Default)]
pub struct ServerBytes(AtomicIsize);

impl ServerBytes {
    pub(super) fn get(&self) -> isize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The bytes of one connection.
pub struct ByteBudget {
    server: Arc<ServerBytes>,
    /// The caller whose share the bytes beyond the guaranteed ones are counted against.
    owner: OnceLock<Owner>,
    reserved: AtomicUsize,
}

/// A caller, and its share of the bytes of all connections.
struct Owner {
    state: Arc<CallerState>,
    share: isize,
}

impl ByteBudget {
    pub fn new(server: Arc<ServerBytes>) -> Self {
        Self { server, owner: OnceLock::new(), reserved: AtomicUsize::new(0) }
    }

    /// Counts the bytes of the connection against the share of a caller. The first one stays.
    pub fn assign_to(&self, caller: &Caller) {
        self.owner.get_or_init(|| {
            let share = caller.share(MAX_SHARED_BYTES as usize).min(MAX_SHARED_BYTES as usize);
            Owner { state: caller.state.clone(), share: share as isize }
        });
    }

    /// The reserved bytes.
    pub(super) fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    /// Whether more calls may start: the client has read enough for their answers to fit.
    pub fn has_room(&self) -> bool {
        let reserved = self.reserved();
        let has_shared_room = |owner: &Owner| {
            let of_caller = owner.state.shared_bytes.load(Ordering::Relaxed);
            reserved < MAX_CONNECTION_BYTES / 4 * 3
                && of_caller < owner.share / 4 * 3
                && self.server.get() < MAX_SHARED_BYTES / 4 * 3
        };
        reserved < GUARANTEED_BYTES || self.owner.get().is_some_and(has_shared_room)
    }

    /// Reserves bytes. Returns whether they fit.
    pub fn reserve(&self, bytes: usize) -> bool {
        let Some(owner) = self.owner.get() else { return self.reserve_guaranteed(bytes) };
        let before = self.reserved.fetch_add(bytes, Ordering::Relaxed);
        let more = shared_bytes(before + bytes) - shared_bytes(before);
        let add = |count: &AtomicIsize| count.fetch_add(more, Ordering::Relaxed) + more;
        let fits_shared = || {
            // Both are added to, whether they fit or not: a release subtracts from both.
            let (of_caller, total) = (add(&owner.state.shared_bytes), add(&self.server.0));
            of_caller <= owner.share && total <= MAX_SHARED_BYTES
        };
        let fits = (more == 0 || fits_shared()) && before + bytes <= MAX_CONNECTION_BYTES;
        if !fits {
            self.release(bytes);
        }
        fits
    }

    /// Reserves guaranteed bytes.
    fn reserve_guaranteed(&self, bytes: usize) -> bool {
        let add = |reserved: usize| Some(reserved + bytes).filter(|sum| *sum <= GUARANTEED_BYTES);
        self.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    /// Releases reserved bytes.
    pub fn release(&self, bytes: usize) {
        let before = self.reserved.fetch_sub(bytes, Ordering::Relaxed);
        let less = shared_bytes(before) - shared_bytes(before - bytes);
        // Without a caller, no bytes beyond the guaranteed ones are reserved.
        if less > 0
            && let Some(owner) = self.owner.get()
        {
            owner.state.shared_bytes.fetch_sub(less, Ordering::Relaxed);
            self.server.0.fetch_sub(less, Ordering::Relaxed);
        }
    }
}

/// The bytes of a connection beyond the guaranteed ones.
const fn shared_bytes(bytes: usize) -> isize {
    bytes.saturating_sub(GUARANTEED_BYTES) as isize
}
