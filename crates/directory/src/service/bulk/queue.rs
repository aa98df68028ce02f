//! The order in which a server runs bulk changes: callers take turns, and so do the bulk changes of
//! each.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::stores::{BulkChangeKey, DueBulkChange};

/// Turns at once, without those that are stalled.
const MAX_CONCURRENT: usize = 4;
/// Those of one caller: the others have one even if all of its turns take long.
const MAX_OF_CALLER: usize = 3;
/// The time after which a turn is stalled, as by a shard that does not answer.
const STALLED_AFTER: Duration = Duration::from_secs(5);
/// Turns of one caller at once, with those that are stalled.
const MAX_STALLED_OF_CALLER: usize = 16;

/// The bulk changes that are due, and those that have a turn.
#[derive(Default)]
pub struct Queue {
    due: Vec<DueBulkChange>,
    turns: HashMap<BulkChangeKey, Turn>,
    /// When bulk changes whose turn had no effect may have another one.
    postponed: HashMap<BulkChangeKey, Instant>,
    /// The number of the last turn of each caller.
    last_turns: HashMap<String, u64>,
}

struct Turn {
    caller: String,
    began: Instant,
}

/// The turns of a caller.
#[derive(Clone, Copy, Default)]
struct Share {
    active: usize,
    all: usize,
}

impl Queue {
    /// Sets the bulk changes that are due, the first one first.
    pub fn set_due(&mut self, due: Vec<DueBulkChange>, now: Instant) {
        self.due = due;
        self.postponed.retain(|_, until| *until > now);
    }

    /// Whether another turn may begin.
    pub fn has_room(&self, now: Instant) -> bool {
        self.turns.values().filter(|turn| turn.is_active(now)).count() < MAX_CONCURRENT
    }

    /// Begins the next turn: that of the caller with the fewest turns, or of those the one whose
    /// last turn began first. The turn lasts until [`Queue::end`].
    pub fn begin_next(&mut self, now: Instant) -> Option<BulkChangeKey> {
        if !self.has_room(now) {
            return None;
        }
        let shares = self.shares(now);
        let share = |due: &DueBulkChange| shares.get(&*due.caller).copied().unwrap_or_default();
        let may_begin = |due: &&DueBulkChange| {
            let Share { active, all } = share(due);
            let is_waiting =
                !self.turns.contains_key(&due.key) && !self.postponed.contains_key(&due.key);
            is_waiting && active < MAX_OF_CALLER && all < MAX_STALLED_OF_CALLER
        };
        let order =
            |due: &&DueBulkChange| (share(due).active, self.last_turns.get(&due.caller).copied());
        let DueBulkChange { key, caller } = self.due.iter().filter(may_begin).min_by_key(order)?;

        let (key, caller) = (key.clone(), caller.clone());
        let number = self.last_turns.values().max().map_or(0, |last| last + 1);
        self.last_turns.insert(caller.clone(), number);
        self.turns.insert(key.clone(), Turn { caller, began: now });
        Some(key)
    }

    /// Ends a turn.
    pub fn end(&mut self, key: &BulkChangeKey) {
        self.turns.remove(key);
    }

    /// Ends a turn without effect. There is another one after this time.
    pub fn postpone(&mut self, key: BulkChangeKey, until: Instant) {
        self.turns.remove(&key);
        self.postponed.insert(key, until);
    }

    fn shares(&self, now: Instant) -> HashMap<&str, Share> {
        let mut shares = HashMap::<_, Share>::new();
        for turn in self.turns.values() {
            let share = shares.entry(&*turn.caller).or_default();
            share.all += 1;
            share.active += usize::from(turn.is_active(now));
        }
        shares
    }
}

impl Turn {
    fn is_active(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.began) < STALLED_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tenant::Tenant;

    fn due(caller: &str, numbers: std::ops::Range<usize>) -> Vec<DueBulkChange> {
        let due = |n| DueBulkChange {
            key: (Tenant::DEFAULT, format!("{caller}-{n}")),
            caller: caller.to_owned(),
        };
        numbers.map(due).collect()
    }

    /// The next turns, by their ids.
    fn begin(queue: &mut Queue, now: Instant) -> Vec<String> {
        std::iter::from_fn(|| queue.begin_next(now)).map(|(_, id)| id).collect()
    }

    fn key(id: &str) -> BulkChangeKey {
        (Tenant::DEFAULT, id.to_owned())
    }

    #[test]
    fn a_caller_with_few_does_not_wait_for_one_with_many() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.set_due(due("busy", 0..2_000), now);
        assert_eq!(begin(&mut queue, now), ["busy-0", "busy-1", "busy-2"]);
        let both = || due("busy", 3..2_000).into_iter().chain(due("rare", 0..2)).collect();
        queue.set_due(both(), now);
        assert_eq!(begin(&mut queue, now), ["rare-0"]);

        // From then on they take turns.
        queue.end(&key("busy-0"));
        assert_eq!(begin(&mut queue, now), ["rare-1"]);
        queue.end(&key("busy-1"));
        queue.end(&key("rare-1"));
        queue.set_due(both(), now);
        assert_eq!(begin(&mut queue, now), ["busy-3", "rare-1"]);
    }

    #[test]
    fn the_caller_whose_last_turn_is_the_oldest_is_next() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        let mut order = String::new();
        for _ in 0..2 {
            let all = ["a", "b", "c"].into_iter().flat_map(|caller| due(caller, 0..1)).collect();
            queue.set_due(all, now);
            for (_, id) in std::iter::from_fn(|| queue.begin_next(now)).collect::<Vec<_>>() {
                order.push_str(&id[..1]);
                queue.end(&key(&id));
            }
        }
        assert_eq!(order, "abcabc");
        queue.set_due(["c", "a"].into_iter().flat_map(|caller| due(caller, 0..1)).collect(), now);
        assert_eq!(queue.begin_next(now), Some(key("a-0")));
    }

    #[test]
    fn stalled_turns_leave_their_places_to_others() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        let stalled = now + STALLED_AFTER;
        queue.set_due(due("one", 0..40), now);
        assert_eq!(begin(&mut queue, now).len(), MAX_OF_CALLER);
        assert!(begin(&mut queue, now).is_empty());
        assert_eq!(begin(&mut queue, stalled).len(), MAX_OF_CALLER);
        // If all of a caller stall, it gets no more, but others do.
        let mut later = stalled;
        for _ in 0..MAX_STALLED_OF_CALLER {
            later += STALLED_AFTER;
            begin(&mut queue, later);
        }
        assert_eq!(queue.turns.len(), MAX_STALLED_OF_CALLER);
        queue.set_due(due("other", 0..1), later);
        assert_eq!(begin(&mut queue, later), ["other-0"]);
    }

    #[test]
    fn a_turn_without_effect_is_repeated_later() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        let later = now + Duration::from_secs(1);
        queue.set_due(due("one", 0..1), now);
        let began = queue.begin_next(now).unwrap();
        assert!(queue.turns.contains_key(&began) && queue.begin_next(now).is_none());
        queue.postpone(began.clone(), later);
        queue.set_due(due("one", 0..1), now);
        assert!(!queue.turns.contains_key(&began) && queue.begin_next(now).is_none());
        queue.set_due(due("one", 0..1), later);
        assert_eq!(queue.begin_next(later), Some(began));
    }
}
