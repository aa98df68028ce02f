//! A connection and its calls, which run on its task.
//!
//! The HTTP/2 library wants a task for every call. Calls on the connection's own task wake no other
//! thread, calls that arrive together ask the store together, and their answers leave in few
//! writes.

use std::mem::take;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hyper::rt::Executor;

use super::fair_io::ReadSlice;

/// The calls that end before their answers are written: the client reads them while others run.
const CALLS_PER_WRITE: usize = 8;
/// The time for which a connection and its calls run before other connections do.
const SLICE: Duration = Duration::from_micros(200);

type Call = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Starts the calls of a connection.
#[derive(Clone, Default)]
pub struct CallExecutor(Arc<Mutex<Vec<Call>>>);

impl CallExecutor {
    fn started(&self) -> MutexGuard<'_, Vec<Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for CallExecutor {
    fn execute(&self, call: F) {
        self.started().push(Box::pin(call));
    }
}

/// A connection and its calls.
pub struct ConnectionTask<C> {
    pub connection: Pin<Box<C>>,
    executor: CallExecutor,
    calls: FuturesUnordered<Call>,
    slice: Arc<ReadSlice>,
}

impl<C> ConnectionTask<C> {
    /// `executor` is the executor of `connection`, which reads within `slice`.
    pub fn new(connection: C, executor: CallExecutor, slice: Arc<ReadSlice>) -> Self {
        Self { connection: Box::pin(connection), executor, calls: FuturesUnordered::new(), slice }
    }

    /// Runs calls until some answers are to be written, the time is over, or all calls wait.
    fn poll_calls(&mut self, end: Instant, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..CALLS_PER_WRITE {
            self.calls.extend(take(&mut *self.executor.started()));
            if ready!(self.calls.poll_next_unpin(cx)).is_none() {
                return Poll::Pending;
            }
            if Instant::now() >= end {
                break;
            }
        }
        Poll::Ready(())
    }
}

impl<C: Future> ConnectionTask<C> {
    /// Runs the connection and its calls until both wait or the time is over.
    fn poll_until(&mut self, end: Instant, cx: &mut Context<'_>) -> Poll<C::Output> {
        self.slice.begin(end);
        let mut is_over = false;
        loop {
            if let Poll::Ready(ended) = self.connection.as_mut().poll(cx) {
                return Poll::Ready(ended);
            }
            if is_over {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            ready!(self.poll_calls(end, cx));
            is_over = Instant::now() >= end;
        }
    }
}

impl<C: Future> Future for ConnectionTask<C> {
    type Output = C::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<C::Output> {
        self.poll_until(Instant::now() + SLICE, cx)
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
    use std::future::{pending, poll_fn};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::sync::mpsc;

    use tokio::sync::oneshot;
    use tokio::time::timeout;

    use super::*;

    /// A connection that never ends, and its executor.
    fn connection() -> (ConnectionTask<impl Future<Output = ()>>, CallExecutor) {
        let executor = CallExecutor::default();
        (ConnectionTask::new(pending(), executor.clone(), Arc::default()), executor)
    }

    #[tokio::test]
    async fn calls_run_with_their_connection_and_may_start_others() {
        let (task, executor) = connection();
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
        let (mut task, executor) = connection();
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
    async fn other_tasks_run_while_calls_end() {
        let (mut task, executor) = connection();
        let ended = Arc::new(AtomicUsize::new(0));
        for _ in 0..3 {
            let ended = ended.clone();
            executor.execute(async move {
                std::thread::sleep(SLICE);
                ended.fetch_add(1, Relaxed);
            });
        }
        assert!(futures_util::poll!(&mut task).is_pending());
        assert_eq!(ended.load(Relaxed), 1, "they took longer than a slice together");
        tokio::spawn(task);
        while ended.load(Relaxed) < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn answers_are_written_while_other_calls_run() {
        let ended = Arc::new(AtomicUsize::new(0));
        let (counted, (writes, written)) = (ended.clone(), mpsc::channel());
        let connection = poll_fn(move |_| {
            writes.send(counted.load(Relaxed)).unwrap();
            Poll::<()>::Pending
        });
        let executor = CallExecutor::default();
        for _ in 0..20 {
            let ended = ended.clone();
            executor.execute(async move {
                ended.fetch_add(1, Relaxed);
            });
        }
        let mut task = ConnectionTask::new(connection, executor, Arc::default());
        let end = Instant::now() + Duration::from_secs(60);
        let polled = poll_fn(|cx| Poll::Ready(task.poll_until(end, cx))).await;
        assert!(polled.is_pending());
        assert_eq!(written.try_iter().collect::<Vec<_>>(), [0, 8, 16]);
        assert_eq!(ended.load(Relaxed), 20, "the connection is woken for the last answers");
    }
}
