//! The tally of a caller: its calls and look-ups by tenant, since they were last taken.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A metric: calls by outcome, or look-ups by kind of identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Calls by method and code, both with their gRPC names.
    Call {
        /// Such as `GetUser`.
        method: &'static str,
        /// Such as `NOT_FOUND`.
        code: &'static str,
    },
    /// Look-ups by kind of identifier.
    Resolve {
        /// Such as `email`.
        kind: &'static str,
        /// Whether they found a user.
        found: bool,
    },
}

impl fmt::Display for Metric {
    /// The name, such as `calls.GetUser.NOT_FOUND` and `resolves.email.found`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { method, code } => write!(f, "calls.{method}.{code}"),
            Self::Resolve { kind, found: true } => write!(f, "resolves.{kind}.found"),
            Self::Resolve { kind, found: false } => write!(f, "resolves.{kind}.not_found"),
        }
    }
}

/// The counts of one tenant.
pub type Counts = HashMap<Metric, u64>;

/// The number of shards: threads on different shards do not wait for each other.
const SHARDS: usize = 8;
/// The maximum number of tenants of a shard: a caller may name tenants that do not exist.
const MAX_TENANTS: usize = 2_000;

/// The tally of one caller.
#[derive(Debug, Default)]
pub struct Tally([Shard; SHARDS]);

/// The counts of some threads, on its own cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(Mutex<HashMap<String, Counts>>);

thread_local! {
    /// The shard of this thread.
    static THREAD_SHARD: usize = {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS
    };
}

impl Tally {
    /// Adds to a metric of a tenant.
    pub fn add(&self, tenant: &str, metric: Metric, count: u64) {
        let mut tenants = self.0[THREAD_SHARD.with(|shard| *shard)].lock();
        let has_room = tenants.len() < MAX_TENANTS;
        match tenants.get_mut(tenant) {
            Some(counts) => *counts.entry(metric).or_default() += count,
            None if has_room => {
                tenants.insert(tenant.to_owned(), [(metric, count)].into());
            }
            None => {}
        }
    }

    /// Takes all counts, by tenant.
    pub fn take(&self) -> HashMap<String, Counts> {
        let mut totals: HashMap<String, Counts> = HashMap::new();
        for shard in &self.0 {
            for (tenant, counts) in std::mem::take(&mut *shard.lock()) {
                let sums = totals.entry(tenant).or_default();
                for (metric, count) in counts {
                    *sums.entry(metric).or_default() += count;
                }
            }
        }
        totals
    }

    /// Whether it has no counts.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|shard| shard.lock().is_empty())
    }
}

impl Shard {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Counts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUND: Metric = Metric::Resolve { kind: "email", found: true };

    #[test]
    fn metrics_have_names() {
        let call = Metric::Call { method: "GetUser", code: "NOT_FOUND" };
        assert_eq!(call.to_string(), "calls.GetUser.NOT_FOUND");
        assert_eq!(FOUND.to_string(), "resolves.email.found");
    }

    #[test]
    fn taking_counts_resets_them() {
        let tally = Tally::default();
        tally.add("acme", FOUND, 2);
        tally.add("acme", FOUND, 3);
        assert_eq!(tally.take(), [("acme".to_owned(), [(FOUND, 5)].into())].into());
        assert!(tally.is_empty());
    }

    #[test]
    fn the_counts_of_threads_are_added() {
        let tally = Tally::default();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| tally.add("acme", FOUND, 1));
            }
        });
        assert_eq!(tally.take()["acme"][&FOUND], 20);
    }

    #[test]
    fn tenants_are_bounded() {
        let tally = Tally::default();
        for n in 0..=MAX_TENANTS {
            tally.add(&n.to_string(), FOUND, 1);
        }
        tally.add("0", FOUND, 1);
        let taken = tally.take();
        assert_eq!((taken.len(), taken["0"][&FOUND]), (MAX_TENANTS, 2));
    }
}
