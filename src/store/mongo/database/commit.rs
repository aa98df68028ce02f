//! The end of a transaction: the commit, sent until it is answered.

use std::time::Duration;

use tokio::time::Instant;

use crate::store::mongo::client::backoff::Backoff;
use crate::store::mongo::client::error::Fault;
use crate::store::mongo::database::transaction::Transaction;

/// The least time for which the answer to a commit is awaited, so that its outcome is rarely
/// unknown.
pub const MIN_COMMIT_WAIT: Duration = Duration::from_secs(1);
/// Repetitions of a commit that MongoDB does not ask for. One more answer often decides.
const RESENT: usize = 3;

/// Sends the commit until it is answered or the time is up.
///
/// # Errors
/// A transient fault: nothing was written. One that [is unknown](Fault::is_unknown_commit): look
/// for the outcome.
pub async fn commit(mut transaction: Transaction<'_>, deadline: Instant) -> Result<(), Fault> {
    let deadline = deadline.max(Instant::now() + MIN_COMMIT_WAIT);
    let mut backoff = Backoff::of_transaction(deadline);
    let mut resent = 0;
    loop {
        let Err(fault) = transaction.commit().await else { return Ok(()) };
        resent += usize::from(!fault.is_retriable_commit());
        if !fault.is_unknown_commit() || resent > RESENT || !backoff.wait().await {
            return Err(fault);
        }
    }
}

/// Commits a transaction that has only read: what it has read is then what a majority has.
///
/// # Errors
/// [`Fault`]. Nothing was written.
pub async fn confirm(transaction: Transaction<'_>, deadline: Instant) -> Result<(), Fault> {
    commit(transaction, deadline).await.map_err(Fault::of_reads)
}
