//! A connection and its calls.
//!
//! The HTTP/2 library wants a task for every call, which runs on any free thread. That suits calls
//! that compute. Calls that wait for a database run better on the connection's own task: calls that
//! arrive together start together, no other thread wakes up, and their answers leave in one write.

use std::mem::take;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hyper::rt::Executor;

type Call = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Starts the calls of a connection.
#[derive(Clone)]
pub struct CallExecutor {
    task_per_call: bool,
    started: Arc<Mutex<Vec<Call>>>,
}

impl CallExecutor {
    /// Creates an executor. `task_per_call` spawns a task for each call.
    pub fn new(task_per_call: bool) -> Self {
        Self { task_per_call, started: Arc::default() }
    }

    fn started(&self) -> MutexGuard<'_, Vec<Call>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for CallExecutor {
    fn execute(&self, call: F) {
        if self.task_per_call {
            tokio::spawn(call);
        } else {
            self.started().push(Box::pin(call));
        }
    }
}

/// A connection, and its calls without a task of their own.
pub struct ConnectionTask<C> {
    pub connection: Pin<Box<C>>,
    executor: CallExecutor,
    calls: FuturesUnordered<Call>,
}

impl<C> ConnectionTask<C> {
    /// `executor` is the executor of `connection`.
    pub fn new(connection: C, executor: CallExecutor) -> Self {
        Self { connection: Box::pin(connection), executor, calls: FuturesUnordered::new() }
    }
}

impl<C: Future> Future for ConnectionTask<C> {
    type Output = C::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<C::Output> {
        if let Poll::Ready(ended) = self.connection.as_mut().poll(cx) {
            return Poll::Ready(ended);
        }
        if self.executor.task_per_call {
            return Poll::Pending;
        }

        loop {
            let started = take(&mut *self.executor.started());
            self.calls.extend(started);
            if !matches!(self.calls.poll_next_unpin(cx), Poll::Ready(Some(()))) {
                return Poll::Pending;
            }
        }
    }
}

/// Drops the calls that have not started: they hold the executor, which holds them.
impl<C> Drop for ConnectionTask<C> {
    fn drop(&mut self) {
        drop(take(&mut *self.executor.started()));
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use tokio::sync::oneshot;
    use tokio::time::timeout;

    use super::*;

    /// A connection that never ends, and its executor.
    fn connection(task_per_call: bool) -> (ConnectionTask<impl Future<Output = ()>>, CallExecutor) {
        let executor = CallExecutor::new(task_per_call);
        (ConnectionTask::new(pending(), executor.clone()), executor)
    }

    #[tokio::test]
    async fn calls_run_with_their_connection_and_may_start_others() {
        let (task, executor) = connection(false);
        let (done, outcome) = oneshot::channel();
        let others = executor.clone();
        executor.execute(async move {
            tokio::task::yield_now().await;
            others.execute(async { done.send(()).unwrap() });
        });
        tokio::select! {
            () = task => panic!("the connection has ended"),
            outcome = outcome => outcome.unwrap(),
        }
    }

    #[tokio::test]
    async fn calls_end_with_their_connection() {
        let (mut task, executor) = connection(false);
        let (sender, started_call) = oneshot::channel::<()>();
        executor.execute(async { drop((pending::<()>().await, sender)) });
        assert!(timeout(Duration::ZERO, &mut task).await.is_err());
        let (unused_sender, unstarted_call) = oneshot::channel::<()>();
        let executor_handle = executor.clone();
        executor.execute(async { drop((executor_handle, unused_sender)) });
        drop((task, executor));
        assert!(started_call.await.is_err());
        assert!(unstarted_call.await.is_err());
    }

    #[tokio::test]
    async fn spawned_calls_run_by_themselves() {
        let (task, executor) = connection(true);
        let (done, outcome) = oneshot::channel();
        executor.execute(async { done.send(()).unwrap() });
        outcome.await.unwrap();
        drop(task);
    }
}
