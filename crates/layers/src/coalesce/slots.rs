//! The states of the calls of one group, and their counts.

/// The most stalled calls of one group that others need not wait for. Each of them uses resources
/// of the store below.
const MAX_STALLED_CALLS: usize = 8;
/// This many waiting look-ups begin another call, even if more are in flight.
const FLUSH_THRESHOLD: usize = 16;

/// The state of a call. A group without calls is idle.
#[derive(Debug, PartialEq, Eq)]
pub enum CallState {
    /// It takes all look-ups that arrive before it is sent.
    Queued,
    /// It is sent.
    InFlight { look_ups: usize },
    /// It is in flight, and others do not wait for it.
    Stalled,
    /// It has ended.
    Done,
}

/// The counts of the calls of one group by their states. Only its methods change a state.
#[derive(Default)]
pub struct CallSlots {
    is_queued: bool,
    in_flight: usize,
    /// The look-ups of the calls in flight.
    look_ups: usize,
    stalled: usize,
}

impl CallSlots {
    /// Queues one more call if it is worth its cost: as many look-ups wait as are in flight, or
    /// [`FLUSH_THRESHOLD`].
    pub fn try_queue(&mut self, waiting: usize, max_calls: usize) -> Option<CallState> {
        let is_due = waiting > 0
            && waiting >= self.look_ups.min(FLUSH_THRESHOLD)
            && !self.is_queued
            && self.in_flight < max_calls.max(1);
        self.is_queued |= is_due;
        is_due.then_some(CallState::Queued)
    }

    /// Begins a call of a single look-up that was not queued.
    pub const fn bypass(&mut self) -> CallState {
        self.send(1)
    }

    /// Sends a queued call of this many look-ups. It is done if there are none.
    pub fn start(&mut self, call: &mut CallState, look_ups: usize) {
        self.end(call);
        if look_ups > 0 {
            *call = self.send(look_ups);
        }
    }

    const fn send(&mut self, look_ups: usize) -> CallState {
        self.in_flight += 1;
        self.look_ups += look_ups;
        CallState::InFlight { look_ups }
    }

    /// Marks a call in flight as stalled, unless too many calls are.
    pub fn stall(&mut self, call: &mut CallState) {
        if matches!(call, CallState::InFlight { .. }) && self.stalled < MAX_STALLED_CALLS {
            self.end(call);
            self.stalled += 1;
            *call = CallState::Stalled;
        }
    }

    /// Ends a call, unless it has ended.
    pub fn end(&mut self, call: &mut CallState) {
        match std::mem::replace(call, CallState::Done) {
            CallState::Queued => self.is_queued = false,
            CallState::InFlight { look_ups } => {
                self.in_flight -= 1;
                self.look_ups -= look_ups;
            }
            CallState::Stalled => self.stalled -= 1,
            CallState::Done => {}
        }
    }

    /// Whether there is no call.
    pub const fn is_idle(&self) -> bool {
        !self.is_queued && self.in_flight == 0 && self.stalled == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_queued_once_as_many_look_ups_wait_as_are_in_flight() {
        let mut slots = CallSlots::default();
        let mut first = slots.try_queue(1, 2).unwrap();
        assert_eq!(slots.try_queue(1, 2), None, "one is queued");
        slots.start(&mut first, 3);
        assert_eq!((&first, slots.try_queue(2, 2)), (&CallState::InFlight { look_ups: 3 }, None));
        let mut second = slots.try_queue(3, 2).unwrap();
        slots.start(&mut second, 40);
        assert_eq!(slots.try_queue(100, 2), None, "two are in flight");
        slots.stall(&mut first);
        assert_eq!(slots.try_queue(FLUSH_THRESHOLD - 1, 2), None);
        let mut third = slots.try_queue(FLUSH_THRESHOLD, 2).unwrap();
        slots.start(&mut third, 0);
        assert_eq!(third, CallState::Done);
        for call in [&mut first, &mut second, &mut third] {
            assert!(!slots.is_idle() || *call == CallState::Done);
            slots.end(call);
            slots.end(call);
        }
        assert!(slots.is_idle());
    }

    #[test]
    fn few_calls_count_as_stalled() {
        let mut slots = CallSlots::default();
        let mut calls: Vec<_> = (0..=MAX_STALLED_CALLS).map(|_| slots.bypass()).collect();
        calls.iter_mut().for_each(|call| slots.stall(call));
        assert_eq!(calls.pop(), Some(CallState::InFlight { look_ups: 1 }));
        assert!(calls.iter().all(|call| *call == CallState::Stalled));
    }
}
