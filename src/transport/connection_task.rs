//! A connection and its calls.
//!
//! The HTTP/2 library wants a task for every call, which hands it to whichever thread is free. That
//! is right for calls that work. Calls that wait for others are better off on the connection's own
//! task: those that arrive together are taken on together, nobody is woken on another thread, and
//! answers that are there together leave in one write.

use std::mem::take;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hyper::rt::Executor;

type Call = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Begins the calls of a connection.
#[derive(Clone)]
pub struct CallExecutor {
    task_per_call: bool,
    started: Arc<Mutex<Vec<Call>>>,
}

impl CallExecutor {
    /// Whether each call gets a task of its own.
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

/// A connection, and those of its calls that have no task of their own.
pub struct ConnectionTask<C> {
    /// The connection alone.
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

/// A call that was never taken on holds what holds it.
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

    /// A connection that never ends, and what begins its calls.
    fn connection(task_per_call: bool) -> (ConnectionTask<impl Future<Output = ()>>, CallExecutor) {
        let executor = CallExecutor::new(task_per_call);
        (ConnectionTask::new(pending(), executor.clone()), executor)
    }

    #[tokio::test]
    async fn calls_go_on_with_their_connection_and_may_begin_others() {
        let (together, executor) = connection(false);
        let (done, outcome) = oneshot::channel();
        let others = executor.clone();
        executor.execute(async move {
            tokio::task::yield_now().await;
            others.execute(async { done.send(()).unwrap() });
        });
        tokio::select! {
            () = together => panic!("the connection has ended"),
            outcome = outcome => outcome.unwrap(),
        }
    }

    #[tokio::test]
    async fn calls_end_with_their_connection() {
        let (mut together, executor) = connection(false);
        let (taken_on, waited_for) = oneshot::channel::<()>();
        executor.execute(async { drop((pending::<()>().await, taken_on)) });
        assert!(timeout(Duration::ZERO, &mut together).await.is_err());
        let (never_taken_on, never_begun) = oneshot::channel::<()>();
        let own = executor.clone();
        executor.execute(async { drop((own, never_taken_on)) });
        drop((together, executor));
        assert!(waited_for.await.is_err());
        assert!(never_begun.await.is_err());
    }

    #[tokio::test]
    async fn calls_that_are_spread_go_on_by_themselves() {
        let (together, executor) = connection(true);
        let (done, outcome) = oneshot::channel();
        executor.execute(async { done.send(()).unwrap() });
        outcome.await.unwrap();
        drop(together);
    }
}
