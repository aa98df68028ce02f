//! The progress of a purge, which each of its transactions passes to the next.

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;

use locality_uuid::LocalityId;

use crate::timestamp::Timestamp;

/// The progress of a purge.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PurgeProgress {
    /// The histories of the purged users, in their order.
    pub(crate) histories: Vec<OwnHistory>,
    /// The values in these histories.
    pub(crate) values: PurgedValues,
    /// The last of the other users whose histories no longer have these values.
    pub(crate) redacted: Option<LocalityId>,
    /// The cursor in the history of the next one.
    pub(crate) cursor: Option<u64>,
}

/// The history of a purged user.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OwnHistory {
    pub user: LocalityId,
    /// The number of its newest event; 0 if it has none.
    pub newest: u64,
    /// The cursors of its parts after the first, the newest first.
    pub parts: Vec<u64>,
    /// Whether the values of all parts are collected.
    pub is_collected: bool,
}

/// The values in some events of purged users. It has their hashes alone: there may be millions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ValueSet {
    /// The hashes of identity keys, and of fields with their values.
    pub hashes: HashSet<u128>,
    /// The other users whose events may have these values, and the times of the first events that
    /// they share.
    pub others: BTreeMap<LocalityId, Timestamp>,
}

impl ValueSet {
    /// Adds another user who shares events since a time.
    pub fn add_other(&mut self, user: LocalityId, time: Timestamp) {
        let since = self.others.entry(user).or_insert(time);
        *since = time.min(*since);
    }

    fn len(&self) -> usize {
        self.hashes.len() + self.others.len()
    }

    fn extend(&mut self, other: &Self) {
        self.hashes.extend(&other.hashes);
        other.others.iter().for_each(|(user, time)| self.add_other(*user, *time));
    }
}

/// The values of purged users.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PurgedValues(Vec<Arc<ValueSet>>);

impl PurgedValues {
    /// Adds values. Joins sets of similar sizes, so that there are few.
    pub fn push(&mut self, values: ValueSet) {
        let mut joined = values;
        if joined.len() == 0 {
            return;
        }
        while let Some(last) = self.0.pop_if(|last| last.len() <= joined.len()) {
            joined.extend(&last);
        }
        self.0.push(Arc::new(joined));
    }

    /// The next of the other users whose events may have these values, by their ids, and the time
    /// since when.
    fn next_other(&self, after: Option<LocalityId>) -> Option<(LocalityId, Timestamp)> {
        let ids = (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        let first = |set: &Arc<ValueSet>| set.others.range(ids).next().map(|(id, at)| (*id, *at));
        self.0.iter().filter_map(first).min()
    }

    /// The next `count` of them, in order.
    pub fn next_others(
        &self,
        after: Option<LocalityId>,
        count: usize,
    ) -> Vec<(LocalityId, Timestamp)> {
        let next = |last: &(LocalityId, Timestamp)| self.next_other(Some(last.0));
        std::iter::successors(self.next_other(after), next).take(count).collect()
    }

    /// Whether it has the value with this hash.
    pub fn has(&self, hash: u128) -> bool {
        self.0.iter().any(|set| set.hashes.contains(&hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(hashes: std::ops::Range<u128>, others: &[(u8, i64)]) -> ValueSet {
        let mut set = ValueSet { hashes: hashes.collect(), ..ValueSet::default() };
        for (user, time) in others {
            set.add_other(LocalityId::from([*user; 16]), Timestamp::from_millis(*time));
        }
        set
    }

    #[test]
    fn values_of_many_parts_are_in_few_sets() {
        let mut values = PurgedValues::default();
        for n in 0..1_000 {
            values.push(set(n * 10..n * 10 + 10, &[]));
        }
        assert!(values.0.len() < 12, "{} sets", values.0.len());
        assert!((0..10_000).all(|hash| values.has(hash)) && !values.has(10_000));
    }

    #[test]
    fn others_come_in_order_with_the_earliest_time() {
        let mut values = PurgedValues::default();
        values.push(set(0..100, &[(2, 30), (1, 20)]));
        values.push(set(100..102, &[(1, 10), (3, 5), (1, 15)]));
        let (mut after, mut found) = (None, Vec::new());
        while let Some((user, since)) = values.next_other(after) {
            found.push((user.as_bytes()[0], since.as_millis()));
            after = Some(user);
        }
        assert_eq!(found, [(1, 10), (2, 30), (3, 5)]);
    }
}
