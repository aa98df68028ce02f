//! Reads of several documents in one snapshot of all shards, which is not older than the call.

use tokio::time::Instant;

use crate::client::backoff::Backoff;
use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::database::commit::commit_reads;
use crate::database::freshness::Freshness;
use crate::database::transaction::Transaction;

/// The attempts at one such read. Each is a transaction that writes nothing.
pub struct SnapshotRead<'c> {
    collections: &'c Collections,
    deadline: Instant,
    backoff: Backoff,
    freshness: Freshness,
    /// The number of finds of all attempts.
    finds: u32,
}

impl<'c> SnapshotRead<'c> {
    /// A read within the time limit of an operation.
    pub fn new(collections: &'c Collections) -> Self {
        let deadline = Instant::now() + collections.timeout;
        let backoff = Backoff::for_transaction(deadline);
        Self { collections, deadline, backoff, freshness: Freshness::default(), finds: 0 }
    }

    /// Begins the next attempt.
    ///
    /// # Errors
    /// The driver's, once there is no time for another attempt.
    pub async fn begin(&mut self) -> Result<Transaction<'c>, Fault> {
        loop {
            match Transaction::begin(self.collections, &self.freshness, self.deadline).await {
                Err(fault) => self.wait(fault).await?,
                begun => return begun,
            }
        }
    }

    /// Ends an attempt with its result and its number of finds. `None` if another attempt is
    /// needed: the transaction met a transient error, or its snapshot may be older than the call.
    ///
    /// # Errors
    /// The attempt's, if another attempt would not help or there is no time for it.
    pub async fn end<T>(
        &mut self,
        mut transaction: Transaction<'c>,
        read: Result<(T, u32), Fault>,
    ) -> Result<Option<(T, u32)>, Fault> {
        let is_fresh = transaction.is_fresh(&self.freshness, |_| false);
        transaction.record_into(&mut self.freshness);
        let ended = match read {
            // A snapshot may be ahead of the majority: the commit waits for it.
            Ok((found, finds)) if is_fresh => {
                self.finds += finds;
                commit_reads(transaction, self.deadline).await.map(|_| Some((found, self.finds)))
            }
            Ok((_, finds)) => {
                self.finds += finds;
                transaction.abort().await;
                if Instant::now() < self.deadline { Ok(None) } else { Err(Fault::TimedOut) }
            }
            Err(fault) => {
                transaction.abort().await;
                Err(fault)
            }
        };

        match ended {
            Err(fault) => self.wait(fault).await.map(|()| None),
            ended => ended,
        }
    }

    /// Waits before the next attempt, if the fault is transient and there is time.
    async fn wait(&mut self, fault: Fault) -> Result<(), Fault> {
        if fault.is_transient() && self.backoff.wait().await { Ok(()) } else { Err(fault) }
    }
}
