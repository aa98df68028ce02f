//! Work that its caller does until it leaves, and that then goes on without it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::timeout;

/// Work that goes on in a task of its own where it is dropped before it is done.
pub struct DetachOnDrop<F: Future<Output: Send + 'static> + Send + 'static> {
    work: Option<Pin<Box<F>>>,
    longest: Duration,
}

impl<F: Future<Output: Send + 'static> + Send + 'static> DetachOnDrop<F> {
    /// Without its caller it goes on for `longest` at most.
    pub fn new(work: F, longest: Duration) -> Self {
        Self { work: Some(Box::pin(work)), longest }
    }
}

impl<F: Future<Output: Send + 'static> + Send + 'static> Future for DetachOnDrop<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // Work that panics is not put back.
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
        // Without a runtime nothing can go on.
        if let (Some(work), Ok(runtime)) = (self.work.take(), Handle::try_current()) {
            runtime.spawn(timeout(self.longest, work));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn who_stays_has_the_outcome() {
        assert_eq!(DetachOnDrop::new(async { tokio::task::yield_now().await }, LONG).await, ());
    }

    #[tokio::test]
    async fn what_is_left_is_done_all_the_same() {
        let (go, gone) = oneshot::channel::<()>();
        let (done, outcome) = oneshot::channel();
        let work = DetachOnDrop::new(async { done.send(gone.await) }, LONG);
        assert!(timeout(Duration::from_millis(20), work).await.is_err());
        go.send(()).unwrap();
        assert!(outcome.await.unwrap().is_ok());
    }

    #[tokio::test]
    async fn what_is_left_does_not_go_on_for_ever() {
        let (held, released) = oneshot::channel::<()>();
        let work = DetachOnDrop::new(
            async move { (held, std::future::pending::<()>().await) },
            Duration::from_millis(20),
        );
        assert!(timeout(Duration::from_millis(20), work).await.is_err());
        assert!(timeout(LONG, released).await.unwrap().is_err());
    }
}
