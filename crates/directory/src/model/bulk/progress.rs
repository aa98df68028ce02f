//! The progress of bulk changes.

use std::collections::BTreeMap;

use locality_uuid::LocalityId;

use crate::error::Blocker;

/// The failures that a bulk change keeps, and their bytes.
const MAX_FAILURES: usize = 1_000;
const MAX_FAILURE_BYTES: usize = 40 << 10;
/// The bytes of a failure besides its reason.
const FAILURE_BYTES: usize = 24;
/// The operations and callers that a bulk change names as what has to be undone first.
const MAX_BLOCKERS: usize = 20;

/// The numbers of users by result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BulkCounts {
    /// Users that changed, or would change.
    pub changed: u64,
    /// Users that already were as the change leaves them.
    pub unchanged: u64,
    /// Deleted and merged users, to which the change does not apply.
    pub skipped: u64,
    /// Users that could not be changed, by the reason of the error.
    pub failed: BTreeMap<String, u64>,
}

impl BulkCounts {
    /// The users that were processed.
    pub fn checked(&self) -> u64 {
        self.changed + self.unchanged + self.skipped + self.failed.values().sum::<u64>()
    }
}

/// The effect of a bulk change on a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkEffect {
    /// The user changed, or would change.
    Changed,
    /// The user already was as the change leaves it.
    Unchanged,
    /// The user is deleted or merged.
    Skipped,
    /// The filter does not match the user any more, or the user is gone.
    Unmatched,
}

/// A user that could not be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkFailure {
    /// The user.
    pub user: LocalityId,
    /// The reason of the error.
    pub reason: String,
}

/// Changes that keep users from being undone: those of an operation and a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkBlocker {
    /// Whose changes they are.
    pub blocker: Blocker,
    /// The users.
    pub users: u64,
    /// How many others are undone before it, at most.
    pub place: u64,
}

/// Users whose turn it is, and the position of the search after them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BulkBatch {
    /// The users.
    pub users: Vec<LocalityId>,
    /// The position of the search; empty at its start.
    pub cursor: Vec<u8>,
    /// Whether the search has ended.
    pub is_last: bool,
}

/// The results of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BulkResults {
    /// The number of users with each effect.
    pub counts: BulkCounts,
    /// The users that failed.
    pub failures: Vec<BulkFailure>,
    /// What keeps users from being undone.
    pub blockers: Vec<BulkBlocker>,
}

impl BulkResults {
    /// Adds a user that was processed.
    pub fn add(&mut self, effect: BulkEffect) {
        match effect {
            BulkEffect::Changed => self.counts.changed += 1,
            BulkEffect::Unchanged => self.counts.unchanged += 1,
            BulkEffect::Skipped => self.counts.skipped += 1,
            BulkEffect::Unmatched => {}
        }
    }

    /// Adds a user that could not be changed.
    pub fn fail(&mut self, user: LocalityId, reason: &str) {
        *self.counts.failed.entry(reason.to_owned()).or_default() += 1;
        self.failures.push(BulkFailure { user, reason: reason.to_owned() });
    }

    /// Adds what keeps a user from being undone, the last one first.
    pub fn block(&mut self, blockers: &[Blocker]) {
        let found = blockers.iter().zip(0..);
        let found: Vec<_> = found
            .map(|(blocker, place)| BulkBlocker { blocker: blocker.clone(), users: 1, place })
            .collect();
        add_blockers(&mut self.blockers, &found);
    }
}

impl BulkCounts {
    /// Adds other numbers.
    pub(crate) fn add(&mut self, other: &Self) {
        self.changed += other.changed;
        self.unchanged += other.unchanged;
        self.skipped += other.skipped;
        for (reason, users) in &other.failed {
            *self.failed.entry(reason.clone()).or_default() += users;
        }
    }
}

/// Adds failures to a list as far as it has room.
pub(crate) fn add_failures(list: &mut Vec<BulkFailure>, more: &[BulkFailure]) {
    let size = |failure: &BulkFailure| FAILURE_BYTES + failure.reason.len();
    let mut bytes: usize = list.iter().map(size).sum();
    for failure in more {
        bytes += size(failure);
        if list.len() >= MAX_FAILURES || bytes > MAX_FAILURE_BYTES {
            return;
        }
        list.push(failure.clone());
    }
}

/// Adds blockers to a list as far as it has room.
pub(crate) fn add_blockers(list: &mut Vec<BulkBlocker>, more: &[BulkBlocker]) {
    for new in more {
        let is_same = |known: &BulkBlocker| {
            let (known, new) = (&known.blocker, &new.blocker);
            (&known.operation_id, &known.caller) == (&new.operation_id, &new.caller)
        };
        match list.iter().position(is_same) {
            Some(known) => {
                list[known].users += new.users;
                list[known].place = list[known].place.max(new.place);
            }
            None if list.len() < MAX_BLOCKERS => list.push(new.clone()),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_failures_is_bounded() {
        let failure = |reason: &str| BulkFailure {
            user: LocalityId::from([1; 16]),
            reason: reason.to_owned(),
        };
        let mut list = Vec::new();
        for _ in 0..3 {
            add_failures(&mut list, &vec![failure("USER_GONE"); 600]);
        }
        assert_eq!(list.len(), MAX_FAILURES);
        let mut long = Vec::new();
        add_failures(&mut long, &vec![failure(&"R".repeat(1_000)); 100]);
        assert_eq!(long.len(), MAX_FAILURE_BYTES / 1_024);
    }

    #[test]
    fn the_list_of_blockers_is_bounded() {
        let blocker = |operation_id: &str| Blocker {
            operation_id: operation_id.to_owned(),
            caller: "ann".to_owned(),
            method: String::new(),
        };
        let (mut list, mut results) = (Vec::new(), BulkResults::default());
        results.block(&[blocker("a"), blocker("b")]);
        results.block(&[blocker("b")]);
        for _ in 0..2 {
            add_blockers(&mut list, &results.blockers);
        }
        let numbers = |one: &BulkBlocker| (one.users, one.place);
        assert_eq!(list.iter().map(numbers).collect::<Vec<_>>(), [(2, 0), (4, 1)]);
        (0..100).for_each(|n| results.block(&[blocker(&n.to_string())]));
        add_blockers(&mut list, &results.blockers);
        assert_eq!(list.len(), MAX_BLOCKERS);
    }
}
