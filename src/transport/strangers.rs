//! Connections that have made no valid call yet. There are few places for them, and the oldest one
//! makes room for the next: who has no credential cannot keep callers out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The connections that have made no valid call yet, by their age.
pub struct Strangers {
    most: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    next: u64,
    by_age: BTreeMap<u64, Arc<Notify>>,
}

impl Strangers {
    /// Places for so many.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: most.max(1), waiting: Mutex::default() })
    }

    /// A place for a new connection. Where none is left, the oldest one is evicted.
    pub fn enter(self: &Arc<Self>) -> Stranger {
        let mut waiting = self.lock();
        if waiting.by_age.len() >= self.most
            && let Some((_, oldest)) = waiting.by_age.pop_first()
        {
            oldest.notify_one();
        }
        let (number, evicted) = (waiting.next, Arc::new(Notify::new()));
        waiting.next += 1;
        waiting.by_age.insert(number, evicted.clone());
        Stranger { all: self.clone(), number, evicted }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place among those that have made no valid call yet.
pub struct Stranger {
    all: Arc<Strangers>,
    number: u64,
    evicted: Arc<Notify>,
}

impl Stranger {
    /// Gives the place back: a valid call was made.
    pub fn leave(&self) {
        self.all.lock().by_age.remove(&self.number);
    }

    /// Returns once another connection takes the place.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn the_oldest_one_makes_room_unless_it_has_left() {
        let all = Strangers::new(2);
        let is_evicted = |stranger: &Stranger| stranger.evicted().now_or_never().is_some();
        let (first, second) = (all.enter(), all.enter());
        first.leave();
        let third = all.enter();
        assert!(!is_evicted(&first) && !is_evicted(&second));
        let fourth = all.enter();
        assert!(is_evicted(&second) && !is_evicted(&third));
        drop(third);
        let fifth = all.enter();
        assert!(!is_evicted(&fourth) && !is_evicted(&fifth));
        assert_eq!(all.lock().by_age.len(), 2);
    }
}
