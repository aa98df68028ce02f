//! The open store, whose operations are tasks that run to their ends.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::client::detach_on_drop::DetachOnDrop;
use crate::client::error::Fault;
use crate::database::collections::{Collections, LONG_READ};
use crate::database::connected::Connected;
use crate::database::shares::{Share, Shares};
use crate::presence::heartbeat::Heartbeat;
use crate::schema::versions::VersionGuard;
use polynym_directory::{Error, TokenKey};
use polynym_store_common::operations::{Operation, measure};

/// The limit of operations in flight: far more than connections, and few enough to get one in time.
pub const MAX_IN_FLIGHT: usize = 4_096;
/// The time for which an operation may continue after its caller has left: well above the time in
/// which the driver's heartbeat detects a hung server.
const DETACHED_TIMEOUT: Duration = Duration::from_secs(60);
/// The limit of concurrent scans of users. The server reads many users of other tenants for a
/// tenant with few users: other callers must still get connections.
pub const MAX_SCANS: usize = 2;
/// The time limit of the health probe.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// A store in a database of MongoDB.
///
/// Every operation runs to its end, even if its caller leaves: a transaction that is dropped
/// half-way stays open on the server, and an operation that is dropped while it waits for a
/// connection keeps its position in the pool's queue. So each operation has a task of its own;
/// `resolve`, which must be fast, gets one only if its caller leaves.
#[derive(Clone)]
pub struct Mongo {
    pub(crate) connected: Connected,
    /// The time limit of an operation.
    pub(crate) timeout: Duration,
    pub(crate) version_guard: Arc<VersionGuard>,
    /// The connections that only health probes use.
    pub(crate) probes: Connected,
    pub(crate) shares: Shares,
    pub(crate) in_flight: Arc<Semaphore>,
    pub(crate) walks: Arc<Semaphore>,
    pub(crate) heartbeat: Arc<Heartbeat>,
    pub(crate) token_key: TokenKey,
}

impl Mongo {
    /// The collections by the present connections, for one operation.
    pub(crate) fn collections(&self) -> Arc<Collections> {
        self.connected.collections()
    }

    /// The same store by its present connections alone, for operations that share a session.
    pub(crate) fn pinned(&self) -> Self {
        Self { connected: self.connected.pinned(), ..self.clone() }
    }

    /// Runs a read other than a look-up on a task, as one operation.
    pub(crate) async fn read<T, F>(
        &self,
        operation: Operation,
        work: impl FnOnce(Arc<Collections>) -> F,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        measure(operation, self.run_sharing(&self.shares.reads, work)).await
    }

    /// Runs a write on a task, as one operation.
    pub(crate) async fn write<T, F>(
        &self,
        operation: Operation,
        work: impl FnOnce(Arc<Collections>) -> F,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        measure(operation, self.run_sharing(&self.shares.writes, work)).await
    }

    /// The end of the time limit of an operation that begins now.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// Runs work on a task with its part of a share.
    pub(crate) async fn run_sharing<T, F>(
        &self,
        share: &Share,
        work: impl FnOnce(Arc<Collections>) -> F,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        let permit = share.take(1, self.deadline()).await?;
        self.run(holding(permit, work(self.collections()))).await
    }

    /// Runs `work` on a task, which continues if the caller leaves or reaches its deadline.
    pub(crate) async fn run<T>(
        &self,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
    {
        let task = self.spawn(self.abandoned(), Fault::TimedOut, work)?;
        Ok(self.ended(task).await?)
    }

    /// Waits for the end of a task, at most until the caller's deadline.
    pub(crate) async fn ended<T>(&self, task: JoinHandle<Result<T, Fault>>) -> Result<T, Fault> {
        match timeout(self.timeout, task).await {
            Ok(ended) => ended.unwrap_or(Err(Fault::Panicked)),
            Err(_) => Err(Fault::TimedOut),
        }
    }

    /// Runs `work` on the caller's task, and on one of its own once the caller leaves. It saves
    /// waking two threads.
    pub(crate) async fn run_here<T, F>(
        &self,
        work: impl FnOnce(Arc<Collections>) -> F,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        let work = self.counted(work(self.collections()))?;
        let done = timeout(self.timeout, DetachOnDrop::new(work, self.abandoned())).await;
        Ok(done.unwrap_or(Err(Fault::TimedOut))?)
    }

    /// Runs one step of a walk over many documents, as one operation.
    pub(crate) async fn walk<T, F>(
        &self,
        operation: Operation,
        work: impl FnOnce(Arc<Collections>) -> F,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        measure(operation, async { Ok(self.walk_step(work).await?) }).await
    }

    /// Runs one step of a walk over many documents, in its turn, as a part of an operation.
    pub(crate) async fn walk_step<T, F>(
        &self,
        work: impl FnOnce(Arc<Collections>) -> F,
    ) -> Result<T, Fault>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        let turn = self.walks.clone().acquire_owned().await;
        let work = holding(turn, work(self.collections()));
        self.spawn(LONG_READ, Fault::TimedOut, work)?.await.unwrap_or(Err(Fault::Panicked))
    }

    pub(crate) fn abandoned(&self) -> Duration {
        DETACHED_TIMEOUT.max(4 * self.timeout)
    }

    /// Spawns `work` with a time limit, after which it fails with `late`.
    pub(crate) fn spawn<T, E>(
        &self,
        limit: Duration,
        late: Fault,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<JoinHandle<Result<T, E>>, Fault>
    where
        T: Send + 'static,
        E: From<Fault> + Send + 'static,
    {
        let work = self.counted(timeout(limit, work))?;
        Ok(tokio::spawn(async { work.await.unwrap_or_else(|_| Err(late.into())) }))
    }

    /// `work` as one of the operations in flight, until it has ended.
    pub(crate) fn counted<F: Future>(
        &self,
        work: F,
    ) -> Result<impl Future<Output = F::Output> + use<F>, Fault> {
        self.version_guard.check_topology()?;
        let permit =
            self.in_flight.clone().try_acquire_owned().map_err(|_| Fault::TooManyInFlight)?;
        Ok(holding(permit, work))
    }
}

/// Runs `work`, and keeps `permit` until it has ended.
pub async fn holding<P, F: Future>(permit: P, work: F) -> F::Output {
    let done = work.await;
    drop(permit);
    done
}
