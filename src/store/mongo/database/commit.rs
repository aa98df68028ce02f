//! The end of a transaction: the commit, sent until it is answered.

use std::time::Duration;

use tokio::time::Instant;

use crate::store::mongo::client::backoff::Backoff;
use crate::store::mongo::client::error::Fault;
use crate::store::mongo::database::transaction::Transaction;

/// The least time to wait for the answer to a commit, so that its outcome is rarely unknown.
pub const MIN_COMMIT_WAIT: Duration = Duration::from_secs(1);
/// The limit of resends that MongoDB does not ask for. One more answer is often enough.
const MAX_RESENDS: usize = 3;

/// Sends the commit until it is answered or `deadline` has passed.
///
/// # Errors
/// A transient fault: nothing was written. An [unknown](Fault::is_unknown_commit) one: the commit
/// may have succeeded.
pub async fn commit(mut transaction: Transaction<'_>, deadline: Instant) -> Result<(), Fault> {
    let deadline = deadline.max(Instant::now() + MIN_COMMIT_WAIT);
    let mut backoff = Backoff::for_transaction(deadline);
    let mut resends = 0;
    loop {
        let Err(fault) = transaction.commit().await else { return Ok(()) };
        resends += usize::from(!fault.is_retryable_commit());
        if !fault.is_unknown_commit() || resends > MAX_RESENDS || !backoff.wait().await {
            return Err(fault);
        }
    }
}

/// Commits a read-only transaction: then its reads are majority-committed.
///
/// # Errors
/// [`Fault`]. Nothing was written.
pub async fn commit_reads(transaction: Transaction<'_>, deadline: Instant) -> Result<(), Fault> {
    commit(transaction, deadline).await.map_err(Fault::of_read_only)
}
