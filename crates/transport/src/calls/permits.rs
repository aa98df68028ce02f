//! Permits for calls in flight: a pool for look-ups and one for mutations, so that a hanging disk
//! or shard stops one kind alone. A call without a permit is refused.

use std::sync::Arc;

use tonic::Status;

use crate::method::MethodKind;
use crate::protocol;
use polynym_access::{ActiveCount, Caller, CallerState, Permit};

/// The gauge of calls in flight.
pub const CALLS_IN_FLIGHT: (&str, &str) =
    ("polynym_calls_under_way", "Calls that have a permit, by kind: look-up or mutation");
/// The gauge of permits.
pub const PERMITS: (&str, &str) =
    ("polynym_call_permits", "Permits for calls in flight, by kind: look-up or mutation");

/// The kinds of permits. While a disk hangs, mutations use up theirs, and reads continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitKind {
    /// For calls that only read.
    Read,
    /// For calls that may write.
    Mutation,
}

impl PermitKind {
    /// The kind of permit that the calls of a method take, if they take one.
    pub const fn taken_by(kind: MethodKind) -> Option<Self> {
        match kind {
            MethodKind::Read => Some(Self::Read),
            MethodKind::Mutation => Some(Self::Mutation),
            MethodKind::Probe | MethodKind::Stream { .. } => None,
        }
    }
}

/// The permits of a server.
pub struct CallPermits {
    reads: Arc<ActiveCount>,
    mutations: Arc<ActiveCount>,
    /// The number of permits of each kind.
    limit: usize,
}

impl CallPermits {
    /// Creates `limit` permits of each kind.
    pub fn new(limit: usize) -> Self {
        Self { reads: Arc::default(), mutations: Arc::default(), limit }
    }

    /// Checks that the caller has fewer permits than its share.
    ///
    /// # Errors
    /// The caller has its share.
    pub fn check(&self, kind: PermitKind, caller: &Caller) -> Result<(), Status> {
        let active = active_calls(kind, &caller.state).get();
        if active < caller.share(self.limit) {
            Ok(())
        } else {
            Err(protocol::caller_share_exhausted())
        }
    }

    /// Takes a permit of the pool, and of the caller's share of it.
    ///
    /// # Errors
    /// No permit is left, or the caller has its share.
    pub fn take(&self, kind: PermitKind, caller: &Caller) -> Result<Permit<2>, Status> {
        let pool = match kind {
            PermitKind::Read => &self.reads,
            PermitKind::Mutation => &self.mutations,
        };
        let own = active_calls(kind, &caller.state);
        Permit::take([(own, caller.share(self.limit)), (pool, self.limit)]).map_err(|exhausted| {
            match exhausted {
                0 => protocol::caller_share_exhausted(),
                _ => protocol::overloaded(),
            }
        })
    }

    /// Sets the gauges.
    pub fn set_gauges(&self) {
        for (kind, pool) in [("look-up", &self.reads), ("mutation", &self.mutations)] {
            metrics::gauge!(CALLS_IN_FLIGHT.0, "kind" => kind).set(pool.get() as f64);
            metrics::gauge!(PERMITS.0, "kind" => kind).set(self.limit as f64);
        }
    }
}

/// The number of permits that a caller holds.
const fn active_calls(kind: PermitKind, state: &CallerState) -> &Arc<ActiveCount> {
    match kind {
        PermitKind::Read => &state.reads,
        PermitKind::Mutation => &state.mutations,
    }
}
