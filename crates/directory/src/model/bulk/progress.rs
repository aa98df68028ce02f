//! The progress of bulk changes.

use std::collections::BTreeMap;

use locality_uuid::LocalityId;

/// The failures that a bulk change keeps, and their bytes.
const MAX_FAILURES: usize = 1_000;
const MAX_FAILURE_BYTES: usize = 40 << 10;
/// The bytes of a failure besides its reason.
const FAILURE_BYTES: usize = 24;

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
}
