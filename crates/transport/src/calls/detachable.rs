//! Work that runs on the task of its connection, and goes on without its caller.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::timeout;

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Work that goes on by itself if it is dropped before it is done.
pub struct Detachable<T: Send + 'static> {
    work: Option<Work<T>>,
    limit: Duration,
}

impl<T: Send + 'static> Detachable<T> {
    /// Once dropped, the work goes on for at most `limit`.
    pub fn new(work: impl Future<Output = T> + Send + 'static, limit: Duration) -> Self {
        Self { work: Some(Box::pin(work)), limit }
    }
}

impl<T: Send + 'static> Future for Detachable<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // Work that panics is not polled again.
        let Some(mut work) = self.work.take() else { return Poll::Pending };
        let polled = work.as_mut().poll(cx);
        if polled.is_pending() {
            self.work = Some(work);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Detachable<T> {
    fn drop(&mut self) {
        // Without a runtime, nothing can go on.
        if let (Some(work), Ok(runtime)) = (self.work.take(), Handle::try_current()) {
            runtime.spawn(timeout(self.limit, work));
        }
    }
}
