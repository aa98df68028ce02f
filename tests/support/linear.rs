//! Whether a history of calls could have come from something that does one after the other, each at
//! one moment between its start and its end: the search of Wing and Gong, with Lowe's memory of
//! where it has been.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

/// What happens one call after the other.
pub trait Model {
    type State: Clone + Eq + Hash + Debug;
    type Call: Debug;

    /// The state after a call; nothing where the call could not have been answered so in this
    /// state.
    fn step(state: &Self::State, call: &Self::Call) -> Option<Self::State>;

    /// Whether a call never changes anything, whatever the state.
    fn is_read(call: &Self::Call) -> bool;
}

/// A call, answered or not.
#[derive(Clone, Debug)]
pub struct Event<C> {
    pub call: C,
    /// When it was sent.
    pub start: u64,
    /// When it was answered. Where nobody knows whether it happened: never. It may happen at any
    /// time after its start.
    pub end: Option<u64>,
}

/// States that the search may look at before it gives up.
const MOST: usize = 2_000_000;

/// Fails, with the calls that cannot be put into an order, unless there is one.
pub fn check<M: Model>(initial: M::State, mut events: Vec<Event<M::Call>>) -> Result<(), String> {
    // What has no answer stands apart, or the search would go through all that came after it again
    // and again.
    events.sort_by_key(|event| (event.end.is_none(), event.start));
    let answered = events.partition_point(|event| event.end.is_some());
    Search::<M> { events: &events, answered, seen: HashSet::new() }.run(initial)
}

struct Search<'e, M: Model> {
    events: &'e [Event<M::Call>],
    /// How many of them were answered: the first ones.
    answered: usize,
    seen: HashSet<(Done, M::State)>,
}

/// Which events have happened: all before the first number, and these.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Done {
    all_before: usize,
    also: Vec<u32>,
}

impl Done {
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

/// A place in the search: what has happened and what is so now, and what can be tried next.
struct Node<S> {
    done: Done,
    state: S,
    next: Vec<usize>,
}

impl<M: Model> Search<'_, M> {
    fn run(mut self, initial: M::State) -> Result<(), String> {
        let mut farthest = (Done::default(), initial.clone());
        let mut path: Vec<Node<M::State>> =
            self.enter(Done::default(), initial).into_iter().collect();
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
            if self.seen.len() > MOST {
                return Err(format!("too many orders to try; {}", self.describe(&farthest)));
            }
        }
        Err(self.describe(&farthest))
    }

    /// Goes to a place, unless the search was there. Reads that fit here happen here: later they
    /// could only fit worse.
    fn enter(&mut self, mut done: Done, state: M::State) -> Option<Node<M::State>> {
        loop {
            let candidates = self.candidates(&done);
            let call = |n: usize| &self.events[n].call;
            let fits = |n: &usize| M::is_read(call(*n)) && M::step(&state, call(*n)).is_some();
            let reads: Vec<usize> = candidates.iter().copied().filter(fits).collect();
            if reads.is_empty() {
                let next = self.by_urgency(candidates, &state);
                return self.seen.insert((done.clone(), state.clone())).then_some(Node {
                    done,
                    state,
                    next,
                });
            }
            reads.into_iter().for_each(|n| done.add(n));
        }
    }

    /// What can happen next: all that was sent before the first answer to what has not happened.
    fn candidates(&self, done: &Done) -> Vec<usize> {
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

    /// Those that are to be tried first come last: what changes nothing here, for this state may
    /// never come again; then what was answered soonest, and at the end what need not happen.
    fn by_urgency(&self, mut candidates: Vec<usize>, state: &M::State) -> Vec<usize> {
        let changes_nothing =
            |n: usize| M::step(state, &self.events[n].call).as_ref() == Some(state);
        candidates.sort_by_cached_key(|n| {
            (changes_nothing(*n), std::cmp::Reverse(self.events[*n].end.unwrap_or(u64::MAX)))
        });
        candidates
    }

    fn describe(&self, (done, state): &(Done, M::State)) -> String {
        let calls = self.candidates(done).into_iter().map(|n| format!("\n  {:?}", self.events[n]));
        format!(
            "after {} calls, from {state:?}, none of these can lead on:{}",
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
    fn what_one_after_the_other_could_have_done_passes() {
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
    fn what_nothing_could_have_done_fails() {
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
    fn what_is_not_known_may_happen_late_or_never() {
        assert!(is_linear(&[(Write(1), 0, None), (Read(0), 2, Some(3)), (Read(1), 4, Some(5))]));
        assert!(is_linear(&[(Write(1), 0, None), (Read(0), 2, Some(3)), (Read(0), 4, Some(5))]));
        assert!(!is_linear(&[(Write(1), 0, None), (Read(1), 2, Some(3)), (Read(0), 4, Some(5))]));
        assert!(!is_linear(&[(Read(1), 0, Some(1)), (Write(1), 2, None)]));
    }

    /// The same question, answered by trying all orders.
    fn is_linear_by_trying(state: u8, left: &[Event<Call>]) -> bool {
        let first_end = left.iter().filter_map(|event| event.end).min().unwrap_or(u64::MAX);
        left.iter().all(|event| event.end.is_none())
            || left.iter().enumerate().filter(|(_, event)| event.start <= first_end).any(
                |(n, event)| {
                    let rest = [&left[..n], &left[n + 1..]].concat();
                    Register::step(&state, &event.call)
                        .is_some_and(|state| is_linear_by_trying(state, &rest))
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
        fn the_search_finds_what_trying_everything_finds(events in events()) {
            let is_found = check::<Register>(0, events.clone()).is_ok();
            prop_assert_eq!(is_found, is_linear_by_trying(0, &events));
        }
    }
}
