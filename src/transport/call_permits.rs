//! Permits for calls under way: a pool for look-ups and one for mutations, so that a disk or a
//! shard that hangs does not stop the other kind. A call that gets none is refused.

use std::sync::Arc;

use tonic::Status;

use super::protocol;
use super::routes::Permits;
use crate::access::{Caller, Counted, Usage};

/// The gauge of calls under way.
pub const UNDER_WAY: (&str, &str) =
    ("polynym_calls_under_way", "Calls that have a permit, by kind: look-up or mutation");
/// The gauge of permits.
pub const PERMITS: (&str, &str) =
    ("polynym_call_permits", "Permits for calls under way, by kind: look-up or mutation");

/// The permits of a server.
pub struct CallPermits {
    reads: Counted,
    mutations: Counted,
    /// The permits of each kind.
    most: usize,
}

/// A permit, which comes back when it is dropped.
pub struct CallPermit<'a> {
    pool: &'a Counted,
    caller: Option<(Permits, Arc<Usage>)>,
}

impl CallPermits {
    /// So many permits of each kind.
    pub fn new(most: usize) -> Self {
        Self { reads: Counted::default(), mutations: Counted::default(), most }
    }

    /// Whether the caller has fewer than its share.
    ///
    /// # Errors
    /// It has its share, and is told so.
    pub fn check(&self, kind: Permits, caller: &Caller) -> Result<(), Status> {
        let taken = own(kind, &caller.usage).get();
        if taken < caller.share(self.most) { Ok(()) } else { Err(protocol::share_taken()) }
    }

    /// Takes a permit.
    ///
    /// # Errors
    /// All are taken, or the caller has its share.
    pub fn take(
        &self,
        kind: Permits,
        caller: Option<&Arc<Caller>>,
    ) -> Result<CallPermit<'_>, Status> {
        let pool = match kind {
            Permits::Reads => &self.reads,
            Permits::Mutations => &self.mutations,
        };
        if !pool.add(self.most) {
            return Err(protocol::overloaded());
        }
        let mut permit = CallPermit { pool, caller: None };
        if let Some(caller) = caller {
            if !own(kind, &caller.usage).add(caller.share(self.most)) {
                return Err(protocol::share_taken());
            }
            permit.caller = Some((kind, caller.usage.clone()));
        }
        Ok(permit)
    }

    /// Sets the gauges.
    pub fn set_gauges(&self) {
        for (kind, pool) in [("look-up", &self.reads), ("mutation", &self.mutations)] {
            metrics::gauge!(UNDER_WAY.0, "kind" => kind).set(pool.get() as f64);
            metrics::gauge!(PERMITS.0, "kind" => kind).set(self.most as f64);
        }
    }
}

impl Drop for CallPermit<'_> {
    fn drop(&mut self) {
        self.pool.remove();
        if let Some((kind, usage)) = &self.caller {
            own(*kind, usage).remove();
        }
    }
}

/// The permits that a caller has.
fn own(kind: Permits, usage: &Usage) -> &Counted {
    match kind {
        Permits::Reads => &usage.reads,
        Permits::Mutations => &usage.mutations,
    }
}
