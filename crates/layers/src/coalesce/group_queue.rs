//! The look-ups of one group that wait for a call, and its calls.

use std::collections::VecDeque;

use super::batch::{Group, LookUp};
use super::slots::{CallSlots, CallState};

/// The look-ups of one group.
pub struct GroupQueue<G: Group> {
    pub slots: CallSlots,
    waiting: VecDeque<LookUp<G>>,
    /// The number of waiting look-ups at which those of callers who left are removed.
    tidy_at: usize,
}

impl<G: Group> Default for GroupQueue<G> {
    fn default() -> Self {
        Self { slots: CallSlots::default(), waiting: VecDeque::new(), tidy_at: 0 }
    }
}

impl<G: Group> GroupQueue<G> {
    /// Adds a look-up. Removes those of callers who left, which would pile up while the store below
    /// hangs.
    pub fn push(&mut self, look_up: LookUp<G>) {
        if self.waiting.len() >= self.tidy_at {
            self.waiting.retain(|waiting| !waiting.is_void());
            self.tidy_at = 2 * self.waiting.len() + 64;
        }
        self.waiting.push_back(look_up);
    }

    /// Queues one more call for the waiting look-ups if it is worth its cost. The caller must send
    /// it.
    pub fn try_queue_call(&mut self, max_calls: usize) -> Option<CallState> {
        self.slots.try_queue(self.waiting.len(), max_calls)
    }

    /// The look-ups for the next call: the oldest ones, with at most `max_keys` keys together
    /// unless the first one alone has more.
    pub fn take(&mut self, max_keys: usize) -> Vec<LookUp<G>> {
        let mut taken = Vec::with_capacity(self.waiting.len().min(max_keys));
        let mut keys = 0;
        while let Some(next) = self.waiting.pop_front() {
            if next.is_void() {
                continue;
            }
            keys += next.size();
            if keys > max_keys && !taken.is_empty() {
                self.waiting.push_front(next);
                break;
            }
            taken.push(next);
        }

        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use locality_uuid::LocalityId;
    use polynym_directory::{Tenant, View};

    #[test]
    fn look_ups_of_callers_who_left_do_not_pile_up() {
        let id: LocalityId = "00000001-0001-b000-0001-000000000000".parse().unwrap();
        let mut queue: GroupQueue<(Tenant, View)> = GroupQueue::default();
        let mut staying = Vec::new();
        for n in 0..100_000 {
            let (look_up, outcome) = LookUp::new(&[id]);
            queue.push(look_up);
            if n % 500 == 0 {
                staying.push(outcome);
            }
            assert!(queue.waiting.len() <= 2 * staying.len() + 65, "{} wait", queue.waiting.len());
        }
        assert_eq!(queue.take(1_000).len(), staying.len());
        assert!(queue.waiting.is_empty());
    }
}
