//! Checks histories of concurrent calls for linearizability: the search of Wing and Gong, with the
//! cache of Lowe.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

/// The sequential specification.
pub trait Model {
    type State: Clone + Eq + Hash + Debug;
    type Call: Debug;

    /// Returns the state after a call; `None` if the call cannot have this outcome in this state.
    fn step(state: &Self::State, call: &Self::Call) -> Option<Self::State>;

    /// Returns true if a call changes no state.
    fn is_read(call: &Self::Call) -> bool;
}

/// A call with the times of its request and response.
#[derive(Clone, Debug)]
pub struct Event<C> {
    pub call: C,
    /// The time of the request.
    pub start: u64,
    /// The time of the response; `None` if the outcome is unknown: such a call may take effect at
    /// any time after its start, or never.
    pub end: Option<u64>,
}

/// The maximum number of states that the search visits.
const MAX_STATES: usize = 2_000_000;

/// Returns an error with the calls that fit no order, unless the history is linearizable.
pub fn check<M: Model>(initial: M::State, mut events: Vec<Event<M::Call>>) -> Result<(), String> {
    // Calls without a response come last: otherwise the search would revisit all later calls.
    events.sort_by_key(|event| (event.end.is_none(), event.start));
    let answered = events.partition_point(|event| event.end.is_some());
    Search::<M> { events: &events, answered, visited: HashSet::new() }.run(initial)
}

struct Search<'e, M: Model> {
    events: &'e [Event<M::Call>],
    /// The number of calls with a response: the first ones.
    answered: usize,
    visited: HashSet<(Effective, M::State)>,
}

/// The events that have taken effect: all before the first number, and those listed.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Effective {
    all_before: usize,
    also: Vec<u32>,
}

impl Effective {
    fn has(&self, n: usize) -> bool {
        n < self.all_before || self.also.binary_search(&(n as u32)).is_ok()
    }

    fn add(&mut self, n: usize) {
        let at = self.also.partition_point(|other| *other < n as u32);
        self.also.insert(at, n as u32);
        let run = self
            .also
            .iter()
            .zip(self.all_before as u32..)
            .take_while(|(n, next)| **n == *next)
            .count();
        self.all_before += run;
        self.also.drain(..run);
    }

    fn count(&self) -> usize {
        self.all_before + self.also.len()
    }
}

/// A node of the search: the events in effect, the state, and the candidates left to try.
struct Node<S> {
    done: Effective,
    state: S,
    next: Vec<usize>,
}

impl<M: Model> Search<'_, M> {
    fn run(mut self, initial: M::State) -> Result<(), String> {
        let mut farthest = (Effective::default(), initial.clone());
        let mut path: Vec<Node<M::State>> =
            self.enter(Effective::default(), initial).into_iter().collect();
        while let Some(node) = path.last_mut() {
            if node.done.all_before >= self.answered {
                return Ok(());
            }
            if node.done.count() > farthest.0.count() {
                farthest = (node.done.clone(), node.state.clone());
            }
            let Some(n) = node.next.pop() else {
                path.pop();
                continue;
            };
            if let Some(state) = M::step(&node.state, &self.events[n].call) {
                let mut done = node.done.clone();
                done.add(n);
                path.extend(self.enter(done, state));
            }
            if self.visited.len() > MAX_STATES {
                return Err(format!("too many orders; {}", self.describe(&farthest)));
            }
        }
        Err(self.describe(&farthest))
    }

    /// Enters a node, unless it was visited before. Reads that fit take effect here immediately: a
    /// later position fits no better.
    fn enter(&mut self, mut done: Effective, state: M::State) -> Option<Node<M::State>> {
        loop {
            let candidates = self.candidates(&done);
            let call = |n: usize| &self.events[n].call;
            let fits = |n: &usize| M::is_read(call(*n)) && M::step(&state, call(*n)).is_some();
            let reads: Vec<usize> = candidates.iter().copied().filter(fits).collect();
            if reads.is_empty() {
                let next = self.by_urgency(candidates, &state);
                return self.visited.insert((done.clone(), state.clone())).then_some(Node {
                    done,
                    state,
                    next,
                });
            }
            reads.into_iter().for_each(|n| done.add(n));
        }
    }

    /// The candidates: events sent before the first response among those that have not taken
    /// effect.
    fn candidates(&self, done: &Effective) -> Vec<usize> {
        let mut first_end = u64::MAX;
        let mut found = Vec::new();

        for (n, event) in self.events.iter().enumerate().take(self.answered).skip(done.all_before) {
            if event.start > first_end {
                break;
            }
            if !done.has(n) {
                found.push(n);
                first_end = first_end.min(event.end.unwrap_or(u64::MAX));
            }
        }

        found.extend((self.answered..self.events.len()).filter(|n| !done.has(*n)));
        found.retain(|n| self.events[*n].start <= first_end);
        found
    }

    /// Sorts the candidates, the first one to try at the end. Calls without effect in this state
    /// come first in the search, for this state may not return; then the earliest responses; calls
    /// without a response come last.
    fn by_urgency(&self, mut candidates: Vec<usize>, state: &M::State) -> Vec<usize> {
        let changes_nothing =
            |n: usize| M::step(state, &self.events[n].call).as_ref() == Some(state);
        candidates.sort_by_cached_key(|n| {
            (changes_nothing(*n), std::cmp::Reverse(self.events[*n].end.unwrap_or(u64::MAX)))
        });
        candidates
    }

    fn describe(&self, (done, state): &(Effective, M::State)) -> String {
        let calls = self.candidates(done).into_iter().map(|n| format!("\n  {:?}", self.events[n]));
        format!(
            "after {} calls, from {state:?}, none of these fits:{}",
            done.count(),
            calls.collect::<String>()
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A variable.
    struct Register;

    #[derive(Clone, Debug)]
    enum Call {
        Write(u8),
        Read(u8),
        Swap(u8, u8),
    }
    use Call::{Read, Swap, Write};

    impl Model for Register {
        type State = u8;
        type Call = Call;

        fn step(state: &u8, call: &Call) -> Option<u8> {
            match call {
                Write(value) => Some(*value),
                Read(value) => (state == value).then_some(*value),
                Swap(from, to) => (state == from).then_some(*to),
            }
        }

        fn is_read(call: &Call) -> bool {
            matches!(call, Read(_))
        }
    }

    fn is_linear(events: &[(Call, u64, Option<u64>)]) -> bool {
        let events = events.iter().cloned().map(|(call, start, end)| Event { call, start, end });
        check::<Register>(0, events.collect()).is_ok()
    }

    #[test]
    fn a_linearizable_history_passes() {
        assert!(is_linear(&[]));
        assert!(is_linear(&[(Write(1), 0, Some(1)), (Read(1), 2, Some(3))]));
        assert!(is_linear(&[(Write(1), 0, Some(9)), (Read(1), 2, Some(3)), (Read(1), 4, Some(5))]));
        assert!(is_linear(&[(Write(1), 0, Some(9)), (Read(0), 2, Some(3)), (Read(1), 4, Some(5))]));
        assert!(is_linear(&[
            (Swap(1, 2), 0, Some(9)),
            (Write(1), 1, Some(8)),
            (Read(2), 10, Some(11))
        ]));
    }

    #[test]
    fn a_history_that_fits_no_order_fails() {
        assert!(!is_linear(&[(Read(1), 0, Some(1))]));
        assert!(!is_linear(&[(Write(1), 0, Some(1)), (Read(0), 2, Some(3))]));
        assert!(!is_linear(&[
            (Write(1), 0, Some(9)),
            (Read(1), 2, Some(3)),
            (Read(0), 4, Some(5))
        ]));
        assert!(!is_linear(&[(Swap(0, 1), 0, Some(9)), (Swap(0, 1), 1, Some(8))]));
    }

    #[test]
    fn a_call_of_unknown_outcome_takes_effect_late_or_never() {
        assert!(is_linear(&[(Write(1), 0, None), (Read(0), 2, Some(3)), (Read(1), 4, Some(5))]));
        assert!(is_linear(&[(Write(1), 0, None), (Read(0), 2, Some(3)), (Read(0), 4, Some(5))]));
        assert!(!is_linear(&[(Write(1), 0, None), (Read(1), 2, Some(3)), (Read(0), 4, Some(5))]));
        assert!(!is_linear(&[(Read(1), 0, Some(1)), (Write(1), 2, None)]));
    }

    /// Checks linearizability by exhaustive search.
    fn is_linear_by_exhaustion(state: u8, left: &[Event<Call>]) -> bool {
        let first_end = left.iter().filter_map(|event| event.end).min().unwrap_or(u64::MAX);
        left.iter().all(|event| event.end.is_none())
            || left.iter().enumerate().filter(|(_, event)| event.start <= first_end).any(
                |(n, event)| {
                    let rest = [&left[..n], &left[n + 1..]].concat();
                    Register::step(&state, &event.call)
                        .is_some_and(|state| is_linear_by_exhaustion(state, &rest))
                },
            )
    }

    fn events() -> impl Strategy<Value = Vec<Event<Call>>> {
        let call = prop_oneof![
            (0..3u8).prop_map(Write),
            (0..3u8).prop_map(Read),
            (0..3u8, 0..3u8).prop_map(|(from, to)| Swap(from, to)),
        ];
        let event = (call, 0..12u64, proptest::option::weighted(0.8, 0..6u64)).prop_map(
            |(call, start, length)| Event { call, start, end: length.map(|length| start + length) },
        );
        proptest::collection::vec(event, 0..7)
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            cases: 2_000,
            ..ProptestConfig::default()
        })]
        #[test]
        fn the_search_agrees_with_an_exhaustive_search(events in events()) {
            let is_found = check::<Register>(0, events.clone()).is_ok();
            prop_assert_eq!(is_found, is_linear_by_exhaustion(0, &events));
        }
    }
}
