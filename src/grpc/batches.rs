//! The limits of batches: of those that run at a time, and of the items of one, which are counted
//! before the message is decoded.

use tokio::sync::{Semaphore, SemaphorePermit};
use tonic::Status;

use super::status::status;
use polynym_access::{Caller, MAX_BATCHES};
use polynym_directory::{Error, model::unknown};
use polynym_transport::method::Handler;
use polynym_transport::request_body::{PREFIX, RequestBody};
use polynym_transport::rich_status::internal;

/// The permits of all callers for batches, searches and pages.
pub struct BatchPermits(Semaphore);

/// A permit of the caller's share, unless it is anonymous, and one of the server's.
type Permits<'p> = (Option<SemaphorePermit<'p>>, SemaphorePermit<'p>);

impl Default for BatchPermits {
    fn default() -> Self {
        Self(Semaphore::new(MAX_BATCHES))
    }
}

impl BatchPermits {
    /// Waits for a permit. A caller with its share of them waits for its own calls alone.
    pub async fn take<'p>(&'p self, caller: &'p Caller) -> Result<Permits<'p>, Status> {
        let own = if caller.is_anonymous() {
            None
        } else {
            Some(caller.state.batches.0.acquire().await.map_err(|_| internal())?)
        };
        Ok((own, self.0.acquire().await.map_err(|_| internal())?))
    }
}

/// The tag of a batch's items in both messages.
const ITEMS_TAG: u32 = 2;

/// The handler of a method with a batch of at most `limit` items.
pub fn batch(limit: usize, handler: Handler) -> Handler {
    Box::new(move |request| {
        if let RequestBody::Complete(bytes) = request.body()
            && let Err(refusal) = check_batch(bytes.get(PREFIX..).unwrap_or_default(), limit)
        {
            return Box::pin(std::future::ready(refusal.into_http()));
        }
        handler(request)
    })
}

/// Rejects a batch of too many items before decoding: an empty item has two bytes, and many times
/// that once decoded.
fn check_batch(message: &[u8], limit: usize) -> Result<(), Status> {
    let count = unknown::fields(message).filter(|field| field.tag == ITEMS_TAG).count();
    if count > limit { Err(status(Error::BatchTooLarge { limit, count })) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tonic_types::StatusExt;

    use super::*;

    fn named(name: &str) -> Caller {
        Caller { name: name.to_owned(), ..Caller::anonymous() }
    }

    #[test]
    fn batches_of_one_caller_leave_permits_to_others() {
        let permits = BatchPermits::default();
        let (greedy, modest) = (named("greedy"), named("modest"));
        let mut taken: Vec<_> =
            (0..MAX_BATCHES).map_while(|_| permits.take(&greedy).now_or_never()).collect();
        assert_eq!(taken.len(), MAX_BATCHES / 2);
        assert!(permits.take(&modest).now_or_never().is_some());
        taken.pop();
        assert!(permits.take(&greedy).now_or_never().is_some());
    }

    #[test]
    fn batches_without_credentials_are_of_one_caller() {
        let (permits, anonymous) = (BatchPermits::default(), Caller::anonymous());
        let take = || permits.take(&anonymous).now_or_never();
        let taken: Vec<_> = std::iter::from_fn(take).collect();
        assert_eq!(taken.len(), MAX_BATCHES);
    }

    /// Counts items that cannot be decoded, too.
    #[test]
    fn items_are_counted_before_they_are_decoded() {
        let items = |count: usize| [0x12, 1, 0xff].repeat(count);
        assert!(check_batch(&items(1_000), 1_000).is_ok());
        let refused = check_batch(&items(300_000), 1_000).unwrap_err();
        assert_eq!(refused.get_details_error_info().unwrap().metadata["value"], "300000");
    }
}
