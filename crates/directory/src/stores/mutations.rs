//! Mutations, and the clock of a store.

use async_trait::async_trait;

use crate::error::Error;
use crate::model::timestamp::Timestamp;
use crate::mutation::Mutation;
use crate::mutation::read_set::Outcome;

/// Mutations, each of which is one transaction.
#[async_trait]
pub trait Mutations: Send + Sync + 'static {
    /// Carries out a mutation: reads what [`Mutation::decide`] asks for until it has decided, and
    /// writes the write set. What was read and what is written belong to one transaction. Where the
    /// mutation carries a request that was answered within its lifetime, answers as
    /// [`Mutation::decide_again`] says and writes nothing.
    ///
    /// # Errors
    /// Those of [`Mutation::decide`]; [`Error::RequestIdReused`]; [`Error::Unavailable`] where
    /// nothing was written; [`Error::OutcomeUnknown`] where the outcome is unknown.
    async fn mutate(&self, mutation: Mutation) -> Result<Outcome, Error>;

    /// Carries out mutations, each as [`Mutations::mutate`] does, and answers in their order. Many
    /// may share a transaction.
    async fn mutate_all(&self, mutations: Vec<Mutation>) -> Vec<Result<Outcome, Error>>;

    /// The present time by another clock than this machine's wall clock, whose time is `wall`; none
    /// while it is not known. A store that has no such clock of its own learns the time from
    /// `wall`, and goes on from there by the monotonic clock.
    fn time(&self, wall: Timestamp) -> Option<Timestamp>;

    /// The value of a counter.
    #[cfg(feature = "test-entity")]
    async fn counter(&self, name: &str) -> Result<u64, Error>;
}
