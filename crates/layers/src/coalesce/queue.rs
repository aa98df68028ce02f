//! The groups with calls, and the look-ups that wait for them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::batch::{Answered, Batch, Group, LookUp};
use super::call::Call;
use super::group_queue::GroupQueue;
use super::options::Options;
use super::slots::CallState;
use super::stalled_retry::StalledRetry;
use crate::latency::UsualLatency;
use polynym_directory::{Error, LookUps};
use polynym_store_common::spans;

pub const GIVEN_UP: &str = "a look-up was given up";

pub struct Queue<G: Group> {
    pub inner: Arc<dyn LookUps>,
    retry: Option<StalledRetry>,
    pub usual_latency: UsualLatency,
    pub options: Options,
    /// The queues of groups with calls.
    groups: Mutex<HashMap<G, GroupQueue<G>>>,
    /// Whether look-ups have overlapped since one last ran alone from beginning to end.
    pub look_ups_overlap: AtomicBool,
}

impl<G: Group> Queue<G> {
    pub fn new(inner: Arc<dyn LookUps>, options: Options) -> Self {
        Self {
            inner,
            retry: None,
            usual_latency: UsualLatency::default(),
            options,
            groups: Mutex::default(),
            look_ups_overlap: AtomicBool::new(true),
        }
    }

    /// Sets the retry of stalled calls.
    pub fn with_retry(mut self, retry: StalledRetry) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Looks `keys` up in a call that may be shared with others of the group.
    pub async fn look_up(self: &Arc<Self>, group: &G, keys: &[G::Key]) -> Answered<G::Found> {
        if let Some(call) = self.try_bypass(group) {
            return call.run_alone(group, keys).await;
        }
        let (look_up, outcome) = LookUp::new(keys);
        let since = Instant::now();
        self.add(group, look_up);
        // Fails if the runtime of the call has shut down.
        let answered = outcome.await.unwrap_or_else(|_| Err(Error::Unavailable(GIVEN_UP.into())));
        // The call is that of several look-ups, each of which has a trace of its own.
        let outcome = if answered.is_ok() { "ok" } else { "unavailable" };
        spans::add("shared_look_up", since.elapsed(), outcome, answered.is_err());
        answered
    }

    /// Begins the call of a look-up if its group is idle and others are unlikely to join: its
    /// caller makes the call itself, which saves a task. If only one call may be in flight, later
    /// look-ups would wait for it.
    fn try_bypass(self: &Arc<Self>, group: &G) -> Option<Call<G>> {
        if self.look_ups_overlap.load(Ordering::Relaxed) || self.options.calls < 2 {
            return None;
        }
        let mut groups = self.groups();
        if groups.contains_key(group) {
            self.look_ups_overlap.store(true, Ordering::Relaxed);
            return None;
        }
        let state = groups.entry(group.clone()).or_default().slots.bypass();
        Some(Call::new(self.clone(), group.clone(), state))
    }

    /// Adds a look-up to the next call.
    fn add(self: &Arc<Self>, group: &G, look_up: LookUp<G>) {
        let mut groups = self.groups();
        if !groups.contains_key(group) {
            groups.insert(group.clone(), GroupQueue::default());
        }
        let call = groups.get_mut(group).and_then(|queue| {
            queue.push(look_up);
            queue.try_queue_call(self.options.calls)
        });
        drop(groups);
        self.spawn_call(group, call);
    }

    /// Sends a call that was queued.
    pub fn spawn_call(self: &Arc<Self>, group: &G, queued: Option<CallState>) {
        if let Some(state) = queued {
            Call::new(self.clone(), group.clone(), state).spawn();
        }
    }

    /// Marks a call as stalled, so that later look-ups do not wait for it, unless too many calls
    /// are stalled.
    pub fn mark_stalled(self: &Arc<Self>, group: &G, call: &mut CallState) {
        let another = self.update(group, |queue| {
            queue.slots.stall(call);
            queue.try_queue_call(self.options.calls)
        });
        self.spawn_call(group, another.flatten());
    }

    /// The retry of stalled calls. None if calls are usually so slow that a short timeout would
    /// often fail them.
    pub fn usable_retry(&self) -> Option<&StalledRetry> {
        let min_timeout = self.options.stall_timeout;
        let stall_timeout = self.usual_latency.late_after(min_timeout);
        self.retry.as_ref().filter(|_| stall_timeout <= 2 * min_timeout)
    }

    /// Retries look-ups without an answer in another task, which is none of the calls in flight.
    pub fn spawn_retry(self: &Arc<Self>, group: &G, batch: Batch<G>, start: Instant) {
        let (queue, group) = (self.clone(), group.clone());
        tokio::spawn(async move {
            if let Some(retry) = &queue.retry {
                retry.retry_batch(&group, batch, start).await;
            }
        });
    }

    /// Changes the calls of a group. Removes the group if it is idle then.
    pub fn update<T>(&self, group: &G, change: impl FnOnce(&mut GroupQueue<G>) -> T) -> Option<T> {
        let mut groups = self.groups();
        let queue = groups.get_mut(group)?;
        let changed = change(queue);
        let idle = if queue.slots.is_idle() { groups.remove(group) } else { None };
        drop(groups);
        // Wakes the callers of look-ups that nobody answers, without the lock.
        drop(idle);
        Some(changed)
    }

    fn groups(&self) -> MutexGuard<'_, HashMap<G, GroupQueue<G>>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
