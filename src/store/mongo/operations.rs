//! Operations as tasks, which run to their ends.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::collections::Collections;
use super::detach_on_drop::DetachOnDrop;
use super::error::Fault;
use super::{DETACHED_TIMEOUT, Mongo};
use crate::directory::error::Error;
use crate::directory::mutation::Mutation;
use crate::directory::mutation::read_set::Outcome;
use crate::directory::stores::Mutations;

/// Mutations of one call that are carried out at once, where each has its own transaction.
const SINGLY_AT_ONCE: usize = 8;

impl Mongo {
    /// Carries out mutations: as many as can in one transaction, the others each in one of its own.
    pub(super) async fn all(&self, mutations: Vec<Mutation>) -> Vec<Result<Outcome, Error>> {
        let mutations = Arc::new(mutations);
        let mut done = self.mutate_together(mutations.clone()).await;
        done.resize_with(mutations.len(), || None);
        let each = Arc::unwrap_or_clone(mutations).into_iter().zip(done);
        let each = each.map(|(mutation, done)| async {
            match done {
                Some(outcome) => Ok(outcome),
                None => self.mutate(mutation).await,
            }
        });
        stream::iter(each.collect::<Vec<_>>()).buffered(SINGLY_AT_ONCE).collect().await
    }

    /// The outcomes of those of the mutations that were carried out in one transaction.
    async fn mutate_together(&self, mutations: Arc<Vec<Mutation>>) -> Vec<Option<Outcome>> {
        if mutations.len() < 2 {
            return Vec::new();
        }
        let together =
            self.run(|collections| async move { collections.mutate_together(&mutations).await });
        together.await.unwrap_or_default()
    }

    /// Carries out `work`, which continues if its caller leaves or reaches its deadline.
    pub(super) async fn run<T, F>(
        &self,
        work: impl FnOnce(Arc<Collections>) -> F,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        let task = self.spawn(self.abandoned(), work(self.collections.clone()))?;
        match timeout(self.collections.timeout, task).await {
            Ok(ended) => Ok(ended.unwrap_or_else(|_| Err(Fault::Panicked))?),
            Err(_) => Err(Fault::Late.into()),
        }
    }

    /// The same on the caller's task while it stays: for callers who do nothing else meanwhile. It
    /// saves waking two threads.
    pub(super) async fn run_here<T, F>(
        &self,
        work: impl FnOnce(Arc<Collections>) -> F,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        let work = self.counted(work(self.collections.clone()))?;
        let done =
            timeout(self.collections.timeout, DetachOnDrop::new(work, self.abandoned())).await;
        Ok(done.unwrap_or(Err(Fault::Late))?)
    }

    pub(super) fn abandoned(&self) -> Duration {
        DETACHED_TIMEOUT.max(4 * self.collections.timeout)
    }

    /// Begins `work`, which is bounded by `longest`.
    pub(super) fn spawn<T, E>(
        &self,
        longest: Duration,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<JoinHandle<Result<T, E>>, Fault>
    where
        T: Send + 'static,
        E: From<Fault> + Send + 'static,
    {
        let work = self.counted(timeout(longest, work))?;
        Ok(tokio::spawn(async { work.await.unwrap_or_else(|_| Err(Fault::Unanswered.into())) }))
    }

    /// `work` as one of the operations under way, until it has ended.
    pub(super) fn counted<F: Future>(
        &self,
        work: F,
    ) -> Result<impl Future<Output = F::Output> + use<F>, Fault> {
        let permit = self.in_flight.clone().try_acquire_owned().map_err(|_| Fault::Crowded)?;
        Ok(async {
            let done = work.await;
            drop(permit);
            done
        })
    }
}
