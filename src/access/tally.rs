//! The tally of a caller: its calls and look-ups by tenant, since it was last taken.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A metric: calls by their outcomes, or look-ups by the kinds of their identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Calls of a method that ended with a code, both by their names in gRPC.
    Call {
        /// Such as `GetUser`.
        method: &'static str,
        /// Such as `NOT_FOUND`.
        code: &'static str,
    },
    /// Look-ups of identifiers of a kind.
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

/// The parts of a tally: threads with different parts do not wait for each other.
const PARTS: usize = 8;
/// The most tenants of a part: a caller may name tenants that do not exist.
const TENANTS: usize = 2_000;

/// The tally of one caller.
#[derive(Debug, Default)]
pub struct Tally([Part; PARTS]);

/// The counts of some threads, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Part(Mutex<HashMap<String, Counts>>);

thread_local! {
    /// The part of this thread.
    static PART: usize = {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        THREADS.fetch_add(1, Ordering::Relaxed) % PARTS
    };
}

impl Tally {
    /// Counts something in a tenant.
    pub fn add(&self, tenant: &str, metric: Metric, count: u64) {
        let mut tenants = self.0[PART.with(|part| *part)].lock();
        let has_room = tenants.len() < TENANTS;
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
        let mut all: HashMap<String, Counts> = HashMap::new();
        for part in &self.0 {
            for (tenant, counts) in std::mem::take(&mut *part.lock()) {
                let sums = all.entry(tenant).or_default();
                for (metric, count) in counts {
                    *sums.entry(metric).or_default() += count;
                }
            }
        }
        all
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|part| part.lock().is_empty())
    }
}

impl Part {
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
    fn what_is_taken_is_counted_anew() {
        let tally = Tally::default();
        tally.add("acme", FOUND, 2);
        tally.add("acme", FOUND, 3);
        assert_eq!(tally.take(), [("acme".to_owned(), [(FOUND, 5)].into())].into());
        assert!(tally.is_empty());
    }

    #[test]
    fn what_threads_count_is_added_up() {
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
        for n in 0..=TENANTS {
            tally.add(&n.to_string(), FOUND, 1);
        }
        tally.add("0", FOUND, 1);
        let taken = tally.take();
        assert_eq!((taken.len(), taken["0"][&FOUND]), (TENANTS, 2));
    }
}
