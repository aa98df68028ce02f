//! The end of a transaction: the commit, sent until it is answered.

use std::time::Duration;

use tokio::time::Instant;

use crate::client::backoff::Backoff;
use crate::client::error::Fault;
use crate::database::times::Times;
use crate::database::transaction::Transaction;

/// The least time to wait for the answer to a commit, so that its outcome is rarely unknown.
pub const MIN_COMMIT_WAIT: Duration = Duration::from_secs(1);
/// The limit of resends that MongoDB does not ask for. One more answer is often enough.
const MAX_RESENDS: usize = 3;

/// A commit that was acknowledged.
pub struct Commit {
    /// Whether it was sent more than once: then another router may have acknowledged it, before all
    /// shards had applied it.
    pub was_resent: bool,
    /// The times of its session, after everything that it has read and written.
    pub times: Times,
}

/// Sends the commit until it is answered or `deadline` has passed.
///
/// # Errors
/// A transient fault: nothing was written. An [unknown](Fault::is_unknown_commit) one: the commit
/// may have succeeded.
pub async fn commit(mut transaction: Transaction<'_>, deadline: Instant) -> Result<Commit, Fault> {
    let deadline = deadline.max(Instant::now() + MIN_COMMIT_WAIT);
    let mut backoff = Backoff::for_transaction(deadline);
    let (mut resends, mut sent) = (0, 0);
    loop {
        let (outcome, attempts) = transaction.commit().await;
        sent += attempts;
        let Err(fault) = outcome else {
            let mut times = Times::default();
            times.learn(&transaction.session);
            return Ok(Commit { was_resent: sent > 1, times });
        };
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
pub async fn commit_reads(
    transaction: Transaction<'_>,
    deadline: Instant,
) -> Result<Commit, Fault> {
    commit(transaction, deadline).await.map_err(Fault::of_read_only)
}
