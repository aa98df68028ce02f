//! Turns of senders: of each sender one part of a delivery waits for the writer at a time, so that
//! the deliveries of one do not delay those of another.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// The turns of the senders that deliver.
#[derive(Debug, Default)]
pub struct Turns(Mutex<HashMap<String, Arc<Semaphore>>>);

impl Turns {
    /// Waits for the turn of a sender, in the order of its calls. It lasts until this is dropped.
    pub async fn of(&self, sender: &str) -> Result<OwnedSemaphorePermit, AcquireError> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            turns.entry(sender.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(1))).clone()
        };
        turn.acquire_owned().await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_sender_has_one_turn_at_a_time() {
        let turns = Turns::default();
        let first = turns.of("one").now_or_never().unwrap();
        assert!(turns.of("one").now_or_never().is_none());
        assert!(turns.of("two").now_or_never().is_some());
        drop(first);
        assert!(turns.of("one").now_or_never().is_some());
        assert_eq!(turns.0.lock().unwrap().len(), 1, "the others have ended");
    }
}
