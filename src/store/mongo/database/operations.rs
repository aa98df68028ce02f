//! Operations as tasks, which run to their ends.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::directory::error::Error;
use crate::store::mongo::client::detach_on_drop::DetachOnDrop;
use crate::store::mongo::client::error::Fault;
use crate::store::mongo::database::collections::Collections;
use crate::store::mongo::presence::heartbeat::Heartbeat;

/// Operations under way at once: far more than there are connections, and few enough to wait for
/// one in time.
pub const MAX_IN_FLIGHT: usize = 4_096;
/// The time for which an operation may go on after its caller has left: until well after the
/// driver's heartbeat has found that a server does not answer.
const DETACHED_TIMEOUT: Duration = Duration::from_secs(60);
/// Walks over users at once. Where a tenant has few users, the server looks at many of others to
/// find them: other callers must not wait for connections meanwhile.
pub const MAX_SCANS: usize = 2;
/// The time limit of one step of a scan.
pub const SCAN_TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// The time for which the answer to the health probe is awaited.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// A store in a database of MongoDB.
///
/// Every operation runs to its end, whether or not its caller stays: the server keeps a transaction
/// open that is dropped half-way, and the driver's pool keeps a place in the queue for every
/// operation that was dropped while it waited for a connection, before those of callers who are
/// there. Each has a task of its own, so that it goes on though its caller does not;
/// `resolve`, which must be fast, gets one where its caller leaves.
#[derive(Clone)]
pub struct Mongo {
    pub(crate) collections: Arc<Collections>,
    pub(crate) in_flight: Arc<Semaphore>,
    pub(crate) walks: Arc<Semaphore>,
    pub(crate) heartbeat: Arc<Heartbeat>,
}

impl Mongo {
    /// Carries out `work`, which continues if its caller leaves or reaches its deadline.
    pub(crate) async fn run<T, F>(
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
    pub(crate) async fn run_here<T, F>(
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

    pub(crate) fn abandoned(&self) -> Duration {
        DETACHED_TIMEOUT.max(4 * self.collections.timeout)
    }

    /// Begins `work`, which is bounded by `longest`.
    pub(crate) fn spawn<T, E>(
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
    pub(crate) fn counted<F: Future>(
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
