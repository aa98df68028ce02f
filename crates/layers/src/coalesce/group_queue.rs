//! The look-ups of one group that wait for a call, and its calls in flight.

use std::collections::{HashMap, VecDeque};

use super::batch::{Group, LookUp};

/// This many waiting look-ups open another call, even if more are in flight.
const FLUSH_THRESHOLD: usize = 16;

/// The state of a call.
#[derive(Clone, Copy)]
pub enum CallState {
    /// About to be sent.
    Open,
    /// In flight, with this number of look-ups.
    Sent(usize),
    /// In flight, and marked as stalled.
    Stalled,
    Ended,
}

/// The look-ups of one group.
pub struct GroupQueue<G: Group> {
    /// Whether a call is open: it takes all look-ups that arrive before it is sent.
    is_open: bool,
    /// The calls in flight.
    calls: usize,
    /// The look-ups of these calls.
    sent: usize,
    /// The stalled calls, which are not among `calls`.
    pub stalled: usize,
    waiting: VecDeque<LookUp<G>>,
    /// The number of waiting look-ups at which those of callers who left are removed.
    tidy_at: usize,
}

impl<G: Group> Default for GroupQueue<G> {
    fn default() -> Self {
        Self { is_open: false, calls: 0, sent: 0, stalled: 0, waiting: VecDeque::new(), tidy_at: 0 }
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

    /// Counts one more call as open if it is worth its cost: as many look-ups wait as are in
    /// flight, or [`FLUSH_THRESHOLD`]. Returns whether the caller must send it.
    pub fn try_open(&mut self, max_calls: usize) -> bool {
        let waiting = self.waiting.len();
        let must_open = waiting > 0
            && waiting >= self.sent.min(FLUSH_THRESHOLD)
            && !self.is_open
            && self.calls < max_calls.max(1);
        self.is_open |= must_open;
        must_open
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

    /// Ends a call in this state.
    pub const fn end_call(&mut self, state: CallState) {
        match state {
            CallState::Open => self.is_open = false,
            CallState::Sent(look_ups) => {
                self.calls -= 1;
                self.sent -= look_ups;
            }
            CallState::Stalled => self.stalled -= 1,
            CallState::Ended => {}
        }
    }

    /// Adds a call with this number of look-ups. Returns its state.
    pub const fn begin_call(&mut self, look_ups: usize) -> CallState {
        if look_ups == 0 {
            return CallState::Ended;
        }
        self.calls += 1;
        self.sent += look_ups;
        CallState::Sent(look_ups)
    }

    pub const fn is_idle(&self) -> bool {
        !self.is_open && self.calls == 0 && self.stalled == 0
    }
}

/// Removes the queue of a group without calls.
pub fn remove_idle<G: Group>(
    queues: &mut HashMap<G, GroupQueue<G>>,
    group: &G,
) -> Option<GroupQueue<G>> {
    if queues.get(group).is_some_and(GroupQueue::is_idle) { queues.remove(group) } else { None }
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
