//! Mutations.

use async_trait::async_trait;

use crate::error::Error;
use crate::mutation::Mutation;
use crate::mutation::read_set::Outcome;

/// Mutations, each of which is one transaction.
#[async_trait]
pub trait Mutations: Send + Sync + 'static {
    /// Executes a mutation in one transaction: reads the requests of [`Mutation::decide`] until it
    /// decides, and writes the write set. A repeated request within its lifetime gets the answer of
    /// [`Mutation::decide_again`], and nothing is written.
    ///
    /// # Errors
    /// Those of [`Mutation::decide`]; [`Error::RequestIdReused`]; [`Error::Unavailable`] if
    /// nothing was written; [`Error::OutcomeUnknown`] if the outcome is unknown.
    async fn mutate(&self, mutation: Mutation) -> Result<Outcome, Error>;

    /// Executes mutations as [`Mutations::mutate`] does. Returns their outcomes in order. Many may
    /// share a transaction.
    async fn mutate_all(&self, mutations: Vec<Mutation>) -> Vec<Result<Outcome, Error>>;

    /// The value of a counter.
    #[cfg(feature = "test-entity")]
    async fn counter(&self, name: &str) -> Result<u64, Error>;
}
