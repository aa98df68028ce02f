//! The state of callers: their connections, their calls and streams, the bytes that wait for them,
//! and the two rates that they spend.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicIsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use metrics::Counter;
use tokio::sync::Semaphore;

use super::permit::{ActiveCount, MAX_METHODS, MethodCounts, share_of};
use super::rate_limiter::RateLimiter;
use super::tally::Tally;

/// The state of one caller.
#[derive(Debug, Default)]
pub struct CallerState {
    /// Open connections.
    pub connections: Arc<ActiveCount>,
    /// Look-ups in flight.
    pub reads: Arc<ActiveCount>,
    /// Mutations in flight.
    pub mutations: Arc<ActiveCount>,
    /// Requests in flight of pages.
    pub pages: Arc<ActiveCount>,
    /// Open streams, by method.
    pub streams: MethodCounts,
    /// Bytes of messages and unread answers, beyond those that each connection is guaranteed.
    pub shared_bytes: AtomicIsize,
    /// The lock of its long computations.
    pub compute_lock: ComputeLock,
    /// Its share of the permits for batches.
    pub batches: BatchShare,
    /// Limits the rate of calls.
    pub calls: RateLimiter,
    /// Limits the rate of look-ups that find no user.
    pub misses: RateLimiter,
    /// Limits the rate of bytes of notices.
    pub notice_bytes: RateLimiter,
    /// The counters of calls, by method and code.
    pub counters: CallCounters,
    /// The calls and look-ups by tenant, since they were last taken.
    pub tally: Tally,
}

/// The lock of long computations: one of a holder runs at a time.
#[derive(Clone, Debug)]
pub struct ComputeLock(pub Arc<Semaphore>);

impl Default for ComputeLock {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

/// The maximum number of batches that a server works on at a time: each may hold a full answer in
/// memory.
pub const MAX_BATCHES: usize = 64;

/// The share of a caller in the permits for batches.
#[derive(Debug)]
pub struct BatchShare(pub Semaphore);

impl Default for BatchShare {
    fn default() -> Self {
        Self(Semaphore::new(share_of(MAX_BATCHES)))
    }
}

/// Counters by method and code, registered on first use.
#[derive(Default)]
pub struct CallCounters(OnceLock<Box<[MethodCounters; MAX_METHODS]>>);

type MethodCounters = OnceLock<Box<[OnceLock<Counter>; CODES]>>;
/// The number of gRPC's codes.
const CODES: usize = 17;

impl CallCounters {
    /// The counter of a method and a code.
    pub fn get(&self, method: usize, code: usize, register: impl FnOnce() -> Counter) -> &Counter {
        let methods = self.0.get_or_init(|| Box::new([const { OnceLock::new() }; MAX_METHODS]));
        let codes = methods[method.min(MAX_METHODS - 1)]
            .get_or_init(|| Box::new([const { OnceLock::new() }; CODES]));
        codes[code.min(CODES - 1)].get_or_init(register)
    }
}

impl fmt::Debug for CallCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallCounters")
    }
}

/// The states of all callers by name. They outlive the entries of a credentials file.
#[derive(Debug, Default)]
pub struct CallerStates(Mutex<HashMap<String, Arc<CallerState>>>);

impl CallerStates {
    /// The state of a caller.
    pub fn of(&self, name: &str) -> Arc<CallerState> {
        self.lock().entry(name.to_owned()).or_default().clone()
    }

    /// Removes the states of callers that are gone.
    pub fn remove_unused(&self) {
        self.lock().retain(|_, state| Arc::strong_count(state) > 1 || !state.tally.is_empty());
    }

    /// All states, with the names of their callers.
    pub fn all(&self) -> Vec<(String, Arc<CallerState>)> {
        self.lock().iter().map(|(name, state)| (name.clone(), state.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<CallerState>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_stay_while_they_are_used() {
        let states = CallerStates::default();
        let one = states.of("one");
        assert!(states.of("two").connections.try_add(1));
        states.remove_unused();
        assert!(Arc::ptr_eq(&one, &states.of("one")));
        assert_eq!(states.of("two").connections.get(), 0);
    }
}
