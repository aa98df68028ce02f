//! Reads of several documents as they are at one moment on all shards, which is not before the
//! call.

use tokio::time::Instant;

use crate::store::mongo::client::backoff::Backoff;
use crate::store::mongo::client::error::Fault;
use crate::store::mongo::database::collections::Collections;
use crate::store::mongo::database::commit::confirm;
use crate::store::mongo::database::freshness::Freshness;
use crate::store::mongo::database::transaction::Transaction;

/// Attempts at one such read. Each is a transaction that writes nothing.
pub struct Moment<'c> {
    collections: &'c Collections,
    deadline: Instant,
    backoff: Backoff,
    freshness: Freshness,
    /// The number of finds of all attempts.
    finds: u32,
}

impl<'c> Moment<'c> {
    /// Attempts for as long as an operation may take.
    pub fn new(collections: &'c Collections) -> Self {
        let deadline = Instant::now() + collections.timeout;
        let backoff = Backoff::of_transaction(deadline);
        Self { collections, deadline, backoff, freshness: Freshness::default(), finds: 0 }
    }

    /// Begins the next attempt.
    ///
    /// # Errors
    /// What the driver says, once there is no time for another attempt.
    pub async fn begin(&mut self) -> Result<Transaction<'c>, Fault> {
        loop {
            match Transaction::begin(self.collections, &self.freshness).await {
                Err(fault) => self.wait(fault).await?,
                begun => return begun,
            }
        }
    }

    /// Ends an attempt, which has read something in so many finds. None where another one is
    /// needed: it met others, or its snapshot may be one from before the call.
    ///
    /// # Errors
    /// Why it failed, where another attempt would not help or there is no time for it.
    pub async fn end<T>(
        &mut self,
        mut transaction: Transaction<'c>,
        read: Result<(T, u32), Fault>,
    ) -> Result<Option<(T, u32)>, Fault> {
        let is_fresh = transaction.is_fresh(&self.freshness, |_| false);
        transaction.teach(&mut self.freshness);
        let ended = match read {
            // A snapshot may be ahead of what a majority has: the commit waits for it.
            Ok((found, finds)) if is_fresh => {
                self.finds += finds;
                confirm(transaction, self.deadline).await.map(|()| Some((found, self.finds)))
            }
            Ok((_, finds)) => {
                self.finds += finds;
                transaction.abort().await;
                if Instant::now() < self.deadline { Ok(None) } else { Err(Fault::Late) }
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

    /// Waits for the next attempt, where the fault is one that passes and there is time.
    async fn wait(&mut self, fault: Fault) -> Result<(), Fault> {
        if fault.is_transient() && self.backoff.wait().await { Ok(()) } else { Err(fault) }
    }
}
