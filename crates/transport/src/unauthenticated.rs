//! Connections without a valid call so far. Their number is bounded, and a new one evicts the
//! oldest: clients without a credential cannot keep callers out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The connections without a valid call so far, by age.
pub struct UnauthenticatedConnections {
    limit: usize,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    next: u64,
    by_age: BTreeMap<u64, Arc<Notify>>,
}

impl UnauthenticatedConnections {
    /// Creates a set of at most `limit` connections.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit: limit.max(1), entries: Mutex::default() })
    }

    /// Adds a connection. Evicts the oldest one if the limit is reached.
    pub fn add(self: &Arc<Self>) -> UnauthenticatedConnection {
        let mut entries = self.lock();
        if entries.by_age.len() >= self.limit
            && let Some((_, oldest)) = entries.by_age.pop_first()
        {
            oldest.notify_one();
        }
        let (number, evicted) = (entries.next, Arc::new(Notify::new()));
        entries.next += 1;
        entries.by_age.insert(number, evicted.clone());
        UnauthenticatedConnection { all: self.clone(), number, evicted }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entry of a connection without a valid call so far.
pub struct UnauthenticatedConnection {
    all: Arc<UnauthenticatedConnections>,
    number: u64,
    evicted: Arc<Notify>,
}

impl UnauthenticatedConnection {
    /// Removes the entry: the connection has made a valid call.
    pub fn remove(&self) {
        self.all.lock().by_age.remove(&self.number);
    }

    /// Waits until another connection evicts this one.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for UnauthenticatedConnection {
    fn drop(&mut self) {
        self.remove();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_new_connection_evicts_the_oldest_one_that_remains() {
        let all = UnauthenticatedConnections::new(2);
        let is_evicted =
            |connection: &UnauthenticatedConnection| connection.evicted().now_or_never().is_some();
        let (first, second) = (all.add(), all.add());
        first.remove();
        let third = all.add();
        assert!(!is_evicted(&first) && !is_evicted(&second));
        let fourth = all.add();
        assert!(is_evicted(&second) && !is_evicted(&third));
        drop(third);
        let fifth = all.add();
        assert!(!is_evicted(&fourth) && !is_evicted(&fifth));
        assert_eq!(all.lock().by_age.len(), 2);
    }
}
