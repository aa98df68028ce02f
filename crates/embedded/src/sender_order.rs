//! The order of deliveries: of each sender one part of a delivery waits for the writer at a time.
//! So the deliveries of one sender do not delay those of another.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// The senders that deliver.
#[derive(Debug, Default)]
pub struct SenderOrder(Mutex<HashMap<String, Arc<Semaphore>>>);

impl SenderOrder {
    /// Waits for the earlier deliveries of a sender, in the order of its calls. The later ones wait
    /// until the permit is dropped.
    pub async fn wait(&self, sender: &str) -> Result<OwnedSemaphorePermit, AcquireError> {
        let permit = {
            let mut senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            senders.retain(|_, permit| Arc::strong_count(permit) > 1);
            senders.entry(sender.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(1))).clone()
        };
        permit.acquire_owned().await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_sender_delivers_one_part_at_a_time() {
        let order = SenderOrder::default();
        let first = order.wait("one").now_or_never().unwrap();
        assert!(order.wait("one").now_or_never().is_none());
        assert!(order.wait("two").now_or_never().is_some());
        drop(first);
        assert!(order.wait("one").now_or_never().is_some());
        assert_eq!(order.0.lock().unwrap().len(), 1, "the others have ended");
    }
}
