//! A future that runs on its caller's task, and continues on a task of its own if the caller drops
//! it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::timeout;

/// A future that continues on a task of its own if it is dropped before it is done.
pub struct DetachOnDrop<F: Future<Output: Send + 'static> + Send + 'static> {
    work: Option<Pin<Box<F>>>,
    limit: Duration,
}

impl<F: Future<Output: Send + 'static> + Send + 'static> DetachOnDrop<F> {
    /// Once dropped, the future continues for at most `limit`.
    pub fn new(work: F, limit: Duration) -> Self {
        Self { work: Some(Box::pin(work)), limit }
    }
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Future for DetachOnDrop<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // A future that panics is not polled again.
        let Some(mut work) = self.work.take() else { return Poll::Pending };
        let polled = work.as_mut().poll(cx);
        if polled.is_pending() {
            self.work = Some(work);
        }
        polled
    }
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Drop for DetachOnDrop<F> {
    fn drop(&mut self) {
        // Without a runtime, nothing can continue.
        if let (Some(work), Ok(runtime)) = (self.work.take(), Handle::try_current()) {
            runtime.spawn(timeout(self.limit, work));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_caller_that_waits_gets_the_outcome() {
        assert_eq!(DetachOnDrop::new(async { tokio::task::yield_now().await }, LONG).await, ());
    }

    #[tokio::test]
    async fn dropped_work_completes() {
        let (go, gone) = oneshot::channel::<()>();
        let (done, outcome) = oneshot::channel();
        let work = DetachOnDrop::new(async { done.send(gone.await) }, LONG);
        assert!(timeout(Duration::from_millis(20), work).await.is_err());
        go.send(()).unwrap();
        assert!(outcome.await.unwrap().is_ok());
    }

    #[tokio::test]
    async fn dropped_work_ends_at_its_limit() {
        let (held, released) = oneshot::channel::<()>();
        let work = DetachOnDrop::new(
            async move { (held, std::future::pending::<()>().await) },
            Duration::from_millis(20),
        );
        assert!(timeout(Duration::from_millis(20), work).await.is_err());
        assert!(timeout(LONG, released).await.unwrap().is_err());
    }
}
