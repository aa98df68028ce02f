//! The look-ups that wait for a call of the store below, and the calls in flight.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep};

use super::batch::{Answered, Batch, Group, LookUp, call};
use super::group_queue::{CallState, GroupQueue, remove_idle};
use super::options::Options;
use super::stalled_retry::{StalledRetry, is_whole, may_retry, take_unanswered};
use crate::latency::UsualLatency;
use polynym_directory::{Error, LookUps};

/// The most stalled calls of one group that others need not wait for. Each of them uses resources
/// of the store below.
const MAX_STALLED_CALLS: usize = 8;
/// The most times that the look-ups of a failed call are halved to find the one that fails. If all
/// fail, halving does not help.
const MAX_HALVINGS: usize = 16;
const GIVEN_UP: &str = "a look-up was given up";

pub struct Queue<G: Group> {
    inner: Arc<dyn LookUps>,
    retry: Option<StalledRetry>,
    usual_latency: UsualLatency,
    options: Options,
    /// The queues of groups with calls in flight.
    queues: Mutex<HashMap<G, GroupQueue<G>>>,
    /// Whether look-ups have overlapped since one last ran alone from beginning to end.
    is_shared: AtomicBool,
}

impl<G: Group> Queue<G> {
    pub fn new(inner: Arc<dyn LookUps>, options: Options) -> Self {
        Self {
            inner,
            retry: None,
            usual_latency: UsualLatency::default(),
            options,
            queues: Mutex::default(),
            is_shared: AtomicBool::new(true),
        }
    }

    /// Sets the retry of stalled calls.
    pub fn with_retry(mut self, retry: StalledRetry) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Looks `keys` up in a call that may be shared with others of the group.
    pub async fn look_up(self: &Arc<Self>, group: &G, keys: &[G::Key]) -> Answered<G::Found> {
        if let Some(in_flight) = self.begin_alone(group) {
            return in_flight.call_alone(group, keys).await;
        }
        let (look_up, outcome) = LookUp::new(keys);
        self.send(group, look_up);
        // Fails if the runtime of the call has shut down.
        outcome.await.unwrap_or_else(|_| Err(Error::Unavailable(GIVEN_UP.into())))
    }

    /// Begins the call of a look-up if none is in flight and others are unlikely to join: its
    /// caller makes the call itself, which saves a task. If only one call may be in flight, later
    /// look-ups would wait for it.
    fn begin_alone(self: &Arc<Self>, group: &G) -> Option<InFlight<G>> {
        if self.is_shared.load(Ordering::Relaxed) || self.options.calls < 2 {
            return None;
        }
        let mut queues = self.queues();
        if queues.contains_key(group) {
            self.is_shared.store(true, Ordering::Relaxed);
            return None;
        }
        let state = queues.entry(group.clone()).or_default().begin_call(1);
        Some(InFlight { queue: self.clone(), group: group.clone(), state, is_stalled: false })
    }

    /// Adds a look-up to the next call.
    pub fn send(self: &Arc<Self>, group: &G, look_up: LookUp<G>) {
        if self.join(group, look_up) {
            InFlight::open(self.clone(), group.clone());
        }
    }

    /// Queues a look-up. Returns whether the caller must open one more call.
    fn join(&self, group: &G, look_up: LookUp<G>) -> bool {
        let mut queues = self.queues();
        if !queues.contains_key(group) {
            queues.insert(group.clone(), GroupQueue::default());
        }
        queues.get_mut(group).is_some_and(|queue| {
            queue.push(look_up);
            queue.try_open(self.options.calls)
        })
    }

    /// Marks a call as stalled, so that later look-ups do not wait for it, unless too many calls
    /// are stalled. Returns the state of the call.
    fn mark_stalled(self: &Arc<Self>, group: &G, state: CallState) -> CallState {
        let mut queues = self.queues();
        let queue = queues.get_mut(group).filter(|queue| queue.stalled < MAX_STALLED_CALLS);
        let Some(queue) = queue else { return state };
        queue.end_call(state);
        queue.stalled += 1;
        let must_open = queue.try_open(self.options.calls);
        drop(queues);
        if must_open {
            InFlight::open(self.clone(), group.clone());
        }

        CallState::Stalled
    }

    /// The retry of stalled calls. None if calls are usually so slow that a short timeout would
    /// often fail them.
    fn usable_retry(&self) -> Option<&StalledRetry> {
        let min_timeout = self.options.stall_timeout;
        let stall_timeout = self.usual_latency.late_after(min_timeout);
        self.retry.as_ref().filter(|_| stall_timeout <= 2 * min_timeout)
    }

    /// Retries look-ups without an answer in another task, which is none of the calls in flight.
    fn retry_beside(self: &Arc<Self>, group: &G, batch: Batch<G>, start: Instant) {
        let (queue, group) = (self.clone(), group.clone());
        tokio::spawn(async move {
            if let Some(retry) = &queue.retry {
                retry.retry_batch(&group, batch, start).await;
            }
        });
    }

    fn queues(&self) -> MutexGuard<'_, HashMap<G, GroupQueue<G>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One call of a group.
struct InFlight<G: Group> {
    queue: Arc<Queue<G>>,
    group: G,
    state: CallState,
    /// Whether the call has exceeded its stall timeout.
    is_stalled: bool,
}

impl<G: Group> InFlight<G> {
    /// Sends the waiting look-ups, in another task. The call must be counted as open. The queues
    /// must not be locked: a runtime that shuts down drops the task immediately.
    fn open(queue: Arc<Queue<G>>, group: G) {
        tokio::spawn(Self { queue, group, state: CallState::Open, is_stalled: false }.run());
    }

    /// Makes the call of a single look-up. It needs no timer: nobody waits for it.
    async fn call_alone(self, group: &G, keys: &[G::Key]) -> Answered<G::Found> {
        let (queue, start) = (self.queue.clone(), Instant::now());
        let outcome = call(group, &*queue.inner, keys).await;
        if let Some(next) = self.reopen() {
            tokio::spawn(next.run());
        }
        // An answer that came at once needs no retry: the store knows which part of it hangs.
        let is_early = outcome.is_ok() && start.elapsed() < queue.options.stall_timeout;
        if is_early || !may_retry(&outcome, start) || queue.usable_retry().is_none() {
            return outcome;
        }
        let (look_up, retried) = LookUp::new(keys);
        queue.retry_beside(group, Batch::new(vec![look_up]), start);
        retried.await.unwrap_or(outcome)
    }

    async fn run(mut self) {
        while let Some(mut batch) = self.next() {
            let outcome = self.call_for_batch(&mut batch).await;
            // Before the answers: the last caller may close the store, which this call must not
            // keep open.
            let next = self.reopen();
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
            let outcome = self.call_or_retry(batch).await;
            if self.is_stalled
                && self.queue.usable_retry().is_some()
                && let Some(unanswered) = take_unanswered(batch, &outcome, start)
            {
                self.queue.retry_beside(&self.group, unanswered, start);
            }
            let retries = batch.split_retries(&outcome, halvings < MAX_HALVINGS);
            halvings += usize::from(outcome.is_err() && !retries.is_empty());
            remaining.extend(retries);
            let Some(next) = remaining.pop() else { return outcome };
            std::mem::replace(batch, next).answer(outcome);
        }
    }

    /// Makes a call. If it stalls, marks it and also retries each of its look-ups by itself.
    async fn call_or_retry(&mut self, batch: &mut Batch<G>) -> Answered<G::Found> {
        let (queue, group, keys, start) = (&self.queue, &self.group, batch.keys(), Instant::now());
        let mut shared_call = pin!(call(group, &*queue.inner, &keys));
        let stall_timeout = queue.usual_latency.late_after(queue.options.stall_timeout);
        let mut timer = pin!(sleep(stall_timeout));
        let mut retries = FuturesUnordered::new();
        self.is_stalled = false;

        loop {
            tokio::select! {
                outcome = &mut shared_call => {
                    if is_whole(&outcome) {
                        queue.usual_latency.learn(start.elapsed());
                    }
                    return outcome;
                }
                () = &mut timer => {
                    self.state = queue.mark_stalled(group, self.state);
                    timer.as_mut().reset(Instant::now() + stall_timeout);
                    let retry = queue.usable_retry().filter(|_| !self.is_stalled);
                    if let Some(retry) = retry && batch.is_shared() {
                        retries.extend(batch.waiting().into_iter().map(|(n, keys)| async move {
                            (n, retry.retry_until_answered(group, &keys).await)
                        }));
                    }
                    self.is_stalled = true;
                }
                Some((n, answers)) = retries.next() => {
                    batch.answer_one(n, answers);
                    if batch.is_over() {
                        return Err(Error::Unavailable(GIVEN_UP.into()));
                    }
                }
            }
        }
    }

    /// The batch of the next call, unless all callers have left. Opens another call for look-ups
    /// that do not fit if it is worth its cost.
    fn next(&mut self) -> Option<Batch<G>> {
        let Options { calls, keys, .. } = self.queue.options;
        let mut queues = self.queue.queues();
        let queue = queues.get_mut(&self.group)?;
        let look_ups = queue.take(keys);
        queue.end_call(self.state);
        self.state = queue.begin_call(look_ups.len());
        let must_open = queue.try_open(calls);
        remove_idle(&mut queues, &self.group);
        drop(queues);
        if must_open {
            Self::open(self.queue.clone(), self.group.clone());
        }

        (!look_ups.is_empty()).then(|| Batch::new(look_ups))
    }

    /// Ends the call. Returns it, open again, if one more call is worth its cost.
    fn reopen(mut self) -> Option<Self> {
        let mut queues = self.queue.queues();
        let queue = queues.get_mut(&self.group)?;
        queue.end_call(self.state);
        let was_alone = matches!(self.state, CallState::Sent(1));
        let must_open = queue.try_open(self.queue.options.calls);
        self.state = if must_open { CallState::Open } else { CallState::Ended };
        if was_alone && queue.is_idle() {
            self.queue.is_shared.store(false, Ordering::Relaxed);
        }

        remove_idle(&mut queues, &self.group);
        drop(queues);
        matches!(self.state, CallState::Open).then_some(self)
    }
}

/// A runtime that shuts down drops calls in flight. Waiting look-ups fail unless another call of
/// their group is left.
impl<G: Group> Drop for InFlight<G> {
    fn drop(&mut self) {
        let mut queues = self.queue.queues();
        if let Some(queue) = queues.get_mut(&self.group) {
            queue.end_call(self.state);
        }
        let abandoned = remove_idle(&mut queues, &self.group);
        drop(queues);
        drop(abandoned);
    }
}
