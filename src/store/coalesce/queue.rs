//! Look-ups that wait for a call of the store below, and the calls that are under way.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Options;
use super::batch::{Answered, Batch, Group, LookUp};
use crate::directory::{Error, Store};

pub struct Queue<G: Group> {
    inner: Arc<dyn Store>,
    options: Options,
    /// The groups that have calls under way.
    lanes: Mutex<HashMap<G, Lane<G>>>,
}

impl<G: Group> Queue<G> {
    pub fn new(inner: Arc<dyn Store>, options: Options) -> Self {
        Self { inner, options, lanes: Mutex::default() }
    }

    /// Looks `keys` up in a call that may be shared with others of the group.
    pub async fn look_up(self: &Arc<Self>, group: &G, keys: &[G::Key]) -> Answered<G::Found> {
        let (look_up, outcome) = LookUp::new(keys);
        if let Some(slot) = self.join(group, look_up) {
            tokio::spawn(slot.run());
        }
        // The runtime that the call was on is gone.
        outcome.await.unwrap_or_else(|_| Err(Error::Unavailable("a look-up was given up".into())))
    }

    /// Has a look-up wait. Where there may be one more call, the caller must start that.
    fn join(self: &Arc<Self>, group: &G, look_up: LookUp<G>) -> Option<Slot<G>> {
        let mut lanes = self.lanes();
        if !lanes.contains_key(group) {
            lanes.insert(group.clone(), Lane::default());
        }
        let lane = lanes.get_mut(group)?;
        lane.push(look_up);
        let is_free = lane.under_way < self.options.calls.max(1);
        is_free.then(|| {
            lane.under_way += 1;
            Slot { queue: self.clone(), group: group.clone(), held: true }
        })
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<G, Lane<G>>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The look-ups of one group.
struct Lane<G: Group> {
    under_way: usize,
    waiting: VecDeque<LookUp<G>>,
    /// At how many that wait those go whose callers have left.
    tidy_at: usize,
}

impl<G: Group> Default for Lane<G> {
    fn default() -> Self {
        Self { under_way: 0, waiting: VecDeque::new(), tidy_at: 0 }
    }
}

impl<G: Group> Lane<G> {
    /// While the store below hangs, callers may come and leave without end; what they leave must not pile up.
    fn push(&mut self, look_up: LookUp<G>) {
        if self.waiting.len() >= self.tidy_at {
            self.waiting.retain(|waiting| !waiting.is_void());
            self.tidy_at = 2 * self.waiting.len() + 64;
        }
        self.waiting.push_back(look_up);
    }

    /// The look-ups for the next call, of `most` keys together unless one alone has more: those that wait longest.
    fn take(&mut self, most: usize) -> Vec<LookUp<G>> {
        let mut taken = Vec::with_capacity(self.waiting.len().min(most));
        let mut size = 0;
        while let Some(next) = self.waiting.pop_front() {
            if next.is_void() {
                continue;
            }
            size += next.size();
            if size > most && !taken.is_empty() {
                self.waiting.push_front(next);
                break;
            }
            taken.push(next);
        }
        taken
    }
}

/// The right to have one call of a group under way.
struct Slot<G: Group> {
    queue: Arc<Queue<G>>,
    group: G,
    held: bool,
}

impl<G: Group> Slot<G> {
    /// Sends what waits until nothing does.
    async fn run(self) {
        let mut work = self.next();
        while let Some((slot, batch)) = work {
            let outcome = batch.ask(&slot.group, &*slot.queue.inner).await;
            // Before the answers: who has the last one may close the store, which this must not keep open.
            let slot = slot.unless_idle();
            batch.answer(outcome);
            // Others have the thread first, among them those who were answered: what they ask at once goes along.
            tokio::task::yield_now().await;
            work = slot.and_then(Self::next);
        }
    }

    /// The slot, or its end where nothing waits: the next look-up then starts a call by itself.
    fn unless_idle(mut self) -> Option<Self> {
        let is_idle = {
            let mut lanes = self.queue.lanes();
            let is_idle = lanes.get(&self.group).is_none_or(|lane| lane.waiting.is_empty());
            if is_idle {
                self.held = false;
                release(&mut lanes, &self.group);
            }
            is_idle
        };
        (!is_idle).then_some(self)
    }

    /// The next call, or the end of the slot.
    fn next(mut self) -> Option<(Self, Batch<G>)> {
        let look_ups = self.take();
        (!look_ups.is_empty()).then(|| (self, Batch::new(look_ups)))
    }

    fn take(&mut self) -> Vec<LookUp<G>> {
        let mut lanes = self.queue.lanes();
        let look_ups = lanes.get_mut(&self.group).map(|lane| lane.take(self.queue.options.keys)).unwrap_or_default();
        if look_ups.is_empty() {
            self.held = false;
            release(&mut lanes, &self.group);
        }
        look_ups
    }
}

/// A runtime that shuts down drops a call half-way. What waits fails unless another call is there to take it along.
impl<G: Group> Drop for Slot<G> {
    fn drop(&mut self) {
        let abandoned = self.held.then(|| release(&mut self.queue.lanes(), &self.group));
        drop(abandoned);
    }
}

/// Gives a slot back, and takes the lane away with the last one.
fn release<G: Group>(lanes: &mut HashMap<G, Lane<G>>, group: &G) -> Option<Lane<G>> {
    let lane = lanes.get_mut(group)?;
    lane.under_way -= 1;
    if lane.under_way == 0 { lanes.remove(group) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Tenant;
    use crate::locality::LocalityId;

    #[test]
    fn what_callers_leave_behind_does_not_pile_up() {
        let id: LocalityId = "00000001-0001-b000-0001-000000000000".parse().unwrap();
        let mut lane: Lane<Tenant> = Lane::default();
        let mut staying = Vec::new();
        for n in 0..100_000 {
            let (look_up, outcome) = LookUp::new(&[id]);
            lane.push(look_up);
            if n % 500 == 0 {
                staying.push(outcome);
            }
            assert!(lane.waiting.len() <= 2 * staying.len() + 65, "{} wait", lane.waiting.len());
        }
        assert_eq!(lane.take(1_000).len(), staying.len());
        assert!(lane.waiting.is_empty());
    }
}
