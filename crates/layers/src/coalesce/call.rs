//! One call of a group: it is queued, sent, answered, and perhaps queued again.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep};

use super::batch::{Answered, Batch, Group, LookUp, call};
use super::options::Options;
use super::queue::{GIVEN_UP, Queue};
use super::slots::CallState;
use super::stalled_retry::{is_complete, may_retry, take_unanswered};
use polynym_directory::Error;

/// The most times that the look-ups of a failed call are halved to find the one that fails. If all
/// fail, halving does not help.
const MAX_HALVINGS: usize = 16;

/// One call of a group. It ends when this is dropped.
pub struct Call<G: Group> {
    queue: Arc<Queue<G>>,
    group: G,
    state: CallState,
}

impl<G: Group> Call<G> {
    pub const fn new(queue: Arc<Queue<G>>, group: G, state: CallState) -> Self {
        Self { queue, group, state }
    }

    /// Sends the waiting look-ups, in another task. The groups must not be locked: a runtime that
    /// shuts down drops the task immediately.
    pub fn spawn(self) {
        tokio::spawn(self.run());
    }

    /// Makes the call of a single look-up. It needs no timer: nobody waits for it.
    pub async fn run_alone(self, group: &G, keys: &[G::Key]) -> Answered<G::Found> {
        let (queue, start) = (self.queue.clone(), Instant::now());
        let outcome = call(group, &*queue.inner, keys).await;
        if let Some(next) = self.next_or_end() {
            next.spawn();
        }
        // An answer that came at once needs no retry: the store knows which part of it hangs.
        let is_early = outcome.is_ok() && start.elapsed() < queue.options.stall_timeout;
        if is_early || !may_retry(&outcome, start) || queue.usable_retry().is_none() {
            return outcome;
        }
        let (look_up, retried) = LookUp::new(keys);
        queue.spawn_retry(group, Batch::new(vec![look_up]), start);
        retried.await.unwrap_or(outcome)
    }

    async fn run(mut self) {
        while let Some(mut batch) = self.start() {
            let outcome = self.call_for_batch(&mut batch).await;
            // Before the answers: the last caller may close the store, which this call must not
            // keep open.
            let next = self.next_or_end();
            batch.answer(outcome);
            let Some(next) = next else { return };
            self = next;
            // Yields to the answered callers: their next look-ups join the call.
            tokio::task::yield_now().await;
        }
    }

    /// Makes the call of a batch, and further calls for callers that it left unanswered. Answers
    /// all callers except those of the last call, whose outcome it returns.
    async fn call_for_batch(&mut self, batch: &mut Batch<G>) -> Answered<G::Found> {
        let (mut remaining, mut halvings) = (Vec::new(), 0);
        loop {
            let start = Instant::now();
            let (outcome, is_late) = self.call_or_retry(batch).await;
            if is_late
                && !batch.is_over()
                && self.queue.usable_retry().is_some()
                && let Some(unanswered) = take_unanswered(batch, &outcome, start)
            {
                self.queue.spawn_retry(&self.group, unanswered, start);
            }
            let retries = batch.split_retries(&outcome, halvings < MAX_HALVINGS);
            halvings += usize::from(outcome.is_err() && !retries.is_empty());
            remaining.extend(retries);
            let Some(next) = remaining.pop() else { return outcome };
            std::mem::replace(batch, next).answer(outcome);
        }
    }

    /// Makes a call. If it stalls, marks it and also retries each of its look-ups by itself.
    /// Returns its outcome, and whether it took longer than the stall timeout.
    async fn call_or_retry(&mut self, batch: &mut Batch<G>) -> (Answered<G::Found>, bool) {
        let (queue, group, keys, start) = (&self.queue, &self.group, batch.keys(), Instant::now());
        let mut shared_call = pin!(call(group, &*queue.inner, &keys));
        let stall_timeout = queue.usual_latency.late_after(queue.options.stall_timeout);
        let mut timer = pin!(sleep(stall_timeout));
        let mut retries = FuturesUnordered::new();
        let mut is_late = false;

        loop {
            tokio::select! {
                outcome = &mut shared_call => {
                    if is_complete(&outcome) {
                        queue.usual_latency.learn(start.elapsed());
                    }
                    return (outcome, is_late);
                }
                () = &mut timer => {
                    queue.mark_stalled(group, &mut self.state);
                    timer.as_mut().reset(Instant::now() + stall_timeout);
                    let retry = queue.usable_retry().filter(|_| !is_late);
                    if let Some(retry) = retry && batch.is_shared() {
                        retries.extend(batch.waiting().into_iter().map(|(n, keys)| async move {
                            (n, retry.retry_until_answered(group, &keys).await)
                        }));
                    }
                    is_late = true;
                }
                Some((n, answers)) = retries.next() => {
                    batch.answer_one(n, answers);
                    if batch.is_over() {
                        return (Err(Error::Unavailable(GIVEN_UP.into())), is_late);
                    }
                }
            }
        }
    }

    /// Sends the queued call. Returns its batch, unless all callers have left. Queues another call
    /// for look-ups that do not fit if it is worth its cost.
    fn start(&mut self) -> Option<Batch<G>> {
        let Options { calls, keys, .. } = self.queue.options;
        let (look_ups, another) = self.queue.update(&self.group, |queue| {
            let look_ups = queue.take(keys);
            queue.slots.start(&mut self.state, look_ups.len());
            (look_ups, queue.try_queue_call(calls))
        })?;
        self.queue.spawn_call(&self.group, another);

        (!look_ups.is_empty()).then(|| Batch::new(look_ups))
    }

    /// Ends the call. Returns the next one, queued, if it is worth its cost.
    fn next_or_end(mut self) -> Option<Self> {
        let (calls, overlaps) = (self.queue.options.calls, &self.queue.look_ups_overlap);
        let next = self.queue.update(&self.group, |queue| {
            let was_alone = self.state == CallState::InFlight { look_ups: 1 };
            queue.slots.end(&mut self.state);
            let next = queue.try_queue_call(calls);
            if was_alone && queue.slots.is_idle() {
                overlaps.store(false, Ordering::Relaxed);
            }
            next
        });
        self.state = next.flatten()?;
        Some(self)
    }
}

/// A runtime that shuts down drops calls in flight. Waiting look-ups fail unless another call of
/// their group is left.
impl<G: Group> Drop for Call<G> {
    fn drop(&mut self) {
        self.queue.update(&self.group, |queue| queue.slots.end(&mut self.state));
    }
}
