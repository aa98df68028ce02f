//! The shares of callers in the processors, for calls that compute for long, such as searches. Such
//! a call runs in short steps, from one yield to the next. At most half of the processors run such
//! steps at a time, and of each caller one at a time, however many calls each of them makes.

use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{block_in_place, yield_now};

use polynym_access::ComputeLock;

/// The bytes of a large message. It takes about a millisecond to write as JSON.
const LARGE_BYTES: usize = 64 << 10;

/// The permits of all callers.
#[derive(Clone)]
pub struct ComputeShares(Arc<Semaphore>);

impl Default for ComputeShares {
    /// The permits of this process.
    fn default() -> Self {
        static ALL: LazyLock<ComputeShares> = LazyLock::new(|| {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            ComputeShares(Arc::new(Semaphore::new(processors.div_ceil(2))))
        });
        ALL.clone()
    }
}

impl ComputeShares {
    /// The steps of a call whose caller has this lock.
    pub fn steps(&self, lock: &ComputeLock) -> Steps {
        Steps { caller: lock.0.clone(), all: self.0.clone(), waiting: None }
    }
}

/// Both permits. They are `None` only if a semaphore is closed, which never happens.
type Permits = [Option<OwnedSemaphorePermit>; 2];

/// The steps of a call.
pub struct Steps {
    caller: Arc<Semaphore>,
    all: Arc<Semaphore>,
    waiting: Option<Pin<Box<dyn Future<Output = Permits> + Send>>>,
}

impl Steps {
    /// Takes a step once the call has its permits.
    pub fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        step: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let _permits = ready!(self.poll_permits(cx));
        step(cx)
    }

    fn poll_permits(&mut self, cx: &mut Context<'_>) -> Poll<Permits> {
        let (caller, all) = (&self.caller, &self.all);
        let waiting =
            self.waiting.get_or_insert_with(|| Box::pin(permits(caller.clone(), all.clone())));
        let permits = ready!(waiting.as_mut().poll(cx));
        self.waiting = None;
        Poll::Ready(permits)
    }
}

/// Waits for both permits, and then for other tasks that can run: no step follows another at once.
async fn permits(caller: Arc<Semaphore>, all: Arc<Semaphore>) -> Permits {
    // In this order, a caller waits for the processors with one call at a time.
    let permits = [caller.acquire_owned().await.ok(), all.acquire_owned().await.ok()];
    yield_now().await;
    permits
}

/// Runs `work`, which has no steps, on a message of this many bytes. If the message is large, it
/// waits for the lock of its caller, and another thread serves the other connections of this thread
/// until `work` has ended.
pub async fn in_one_step<T>(lock: &ComputeLock, bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes < LARGE_BYTES {
        return work();
    }
    let _permits = permits(lock.0.clone(), ComputeShares::default().0).await;
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => block_in_place(work),
        _ => work(),
    }
}

/// Runs a computation in steps, if it has them.
pub async fn in_steps<T>(steps: Option<Steps>, computation: impl Future<Output = T>) -> T {
    let Some(mut steps) = steps else { return computation.await };
    let mut computation = std::pin::pin!(computation);
    std::future::poll_fn(|cx| steps.poll(cx, |cx| computation.as_mut().poll(cx))).await
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn callers_have_equal_shares_whatever_the_number_of_their_calls() {
        let shares = ComputeShares(Arc::new(Semaphore::new(1)));
        let log = Arc::new(Mutex::new(String::new()));
        let busy = shares.0.clone().acquire_owned().await.unwrap();
        let call = |lock: &ComputeLock, name| {
            let (steps, log) = (shares.steps(lock), log.clone());
            tokio::spawn(in_steps(Some(steps), async move {
                for _ in 0..8 {
                    log.lock().unwrap().push(name);
                    yield_now().await;
                }
            }))
        };
        let (greedy, modest) = (ComputeLock::default(), ComputeLock::default());
        let mut calls: Vec<_> = (0..16).map(|_| call(&greedy, 'g')).collect();
        calls.push(call(&modest, 'm'));
        for _ in 0..20 {
            yield_now().await;
        }
        drop(busy);
        join_all(calls).await;
        let log = log.lock().unwrap();
        assert!(log.rfind('m').unwrap() < 20, "the modest caller has every second step: {log}");
        assert_eq!(log.len(), 17 * 8);
    }

    #[tokio::test]
    async fn a_caller_that_waits_for_a_store_leaves_its_lock_to_its_other_calls() {
        let shares = ComputeShares(Arc::new(Semaphore::new(1)));
        let lock = ComputeLock::default();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let waiting = in_steps(Some(shares.steps(&lock)), receiver);
        let sending = in_steps(Some(shares.steps(&lock)), async { sender.send(7).unwrap() });
        let (received, ()) = tokio::join!(waiting, sending);
        assert_eq!(received, Ok(7));
    }

    #[tokio::test]
    async fn calls_that_leave_pass_their_lock_on() {
        let shares = ComputeShares(Arc::new(Semaphore::new(1)));
        let lock = ComputeLock::default();
        let held = lock.0.clone().acquire_owned().await.unwrap();
        let mut left = Box::pin(in_steps(Some(shares.steps(&lock)), async {}));
        assert!(futures_util::poll!(&mut left).is_pending());
        drop(left);
        drop(held);
        in_steps(Some(shares.steps(&lock)), async {}).await;
    }
}
