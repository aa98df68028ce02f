//! Bulk changes: changes of all users that a filter matches, or of listed ones, as jobs of a
//! tenant.

use std::collections::BTreeMap;
use std::time::Duration;

use locality_uuid::LocalityId;
use xxhash_rust::xxh3::xxh3_128;

use super::progress::{BulkBatch, BulkBlocker, BulkCounts, BulkFailure};
use crate::model::attribute::Value;
use crate::model::bulk::lease::Lease;
use crate::model::tenant::Tenant;
use crate::timestamp::Timestamp;

/// The bulk changes of a tenant that may run at once.
pub const MAX_RUNNING: usize = 4;
/// The bulk changes that a tenant keeps.
pub const MAX_KEPT: usize = 100;
/// The time for which a bulk change is kept after its end.
pub const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A change of the users that a filter matches, or of listed ones.
#[derive(Clone, Debug, PartialEq)]
pub struct BulkChange {
    /// The tenant.
    pub tenant: Tenant,
    /// Its id, and the operation id of its events.
    pub id: String,
    /// The filter. With a list it is empty.
    pub filter: String,
    /// The list of its users, if it has one. An undoing has a list once it has found them.
    pub list: Option<BulkList>,
    /// The change.
    pub action: BulkAction,
    /// Whether it only counts what would happen.
    pub dry_run: bool,
    /// The state.
    pub state: BulkState,
    /// The caller who started it or, if it was resumed, who resumed it last.
    pub caller: String,
    /// The reason of the caller who started it; may be empty.
    pub reason: String,
    /// The number of users by result.
    pub counts: BulkCounts,
    /// The first users that failed.
    pub failures: Vec<BulkFailure>,
    /// What has to be undone before the users that an undoing leaves as they are.
    pub blockers: Vec<BulkBlocker>,
    /// The time when it was started.
    pub create_time: Timestamp,
    /// The time when its state or progress last changed.
    pub update_time: Timestamp,
    /// The time when it ended; none while it is running.
    pub end_time: Option<Timestamp>,
    /// The reason why it stopped or failed; empty otherwise.
    pub end_reason: String,
    /// The users whose turn it is, and the position of the search after them.
    pub batch: BulkBatch,
    /// The reason why the users whose turn it is must wait, if they do.
    pub wait: Option<BulkWait>,
    /// The server that runs it.
    pub lease: Option<Lease>,
    /// Until when its undoing may go on, unless that renews it.
    pub undo_until: Option<Timestamp>,
}

/// A list of users. The store keeps their ids apart from the bulk change, a batch in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkList {
    /// The number of users.
    pub users: u64,
    /// A hash of their ids, by which another list with the same id is refused.
    pub digest: u128,
    /// The users that an undoing has found and met before these.
    pub met_before: u64,
    /// Whether an undoing looks for further users after these.
    pub is_partial: bool,
}

impl BulkList {
    /// The users of a batch of a list.
    pub const BATCH_USERS: usize = 100;

    /// The list of these users.
    pub fn new(users: &[LocalityId]) -> Self {
        let bytes: Vec<u8> = users.iter().flat_map(|id| *id.as_bytes()).collect();
        let digest = xxh3_128(&bytes);
        Self { users: users.len() as u64, digest, met_before: 0, is_partial: false }
    }

    /// The number of all users that are known.
    pub const fn total(self) -> u64 {
        self.met_before + self.users
    }

    /// The number of batches.
    pub const fn batches(self) -> u64 {
        self.users.div_ceil(Self::BATCH_USERS as u64)
    }
}

/// The wait of users whom the store does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkWait {
    /// The reason of the last error.
    pub reason: String,
    /// The time when they were first refused.
    pub since: Timestamp,
}

/// The change of each user.
#[derive(Clone, Debug, PartialEq)]
pub enum BulkAction {
    /// Disables the user.
    Disable,
    /// Enables the user.
    Enable,
    /// Deletes the user.
    Delete,
    /// Restores the user, if it is deleted.
    Undelete,
    /// Sets attributes, and removes those without a value.
    Attributes(BTreeMap<String, Option<Value>>),
    /// Undoes the operation with this id for the user. Such a bulk change finds its users.
    Undo(String),
}

impl BulkAction {
    /// The operation that is undone.
    pub fn undone(&self) -> Option<&str> {
        match self {
            Self::Undo(operation_id) => Some(operation_id),
            _ => None,
        }
    }
}

/// The state of a bulk change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkState {
    /// It runs, or waits for a server.
    Running,
    /// It was stopped, and can be resumed.
    Stopped,
    /// All users that matched were processed.
    Completed,
    /// It ended early because of an error, and can be resumed.
    Failed,
}

impl BulkChange {
    /// A new one of all users, which begins to run `now`.
    pub fn new(tenant: Tenant, id: &str, action: BulkAction, now: Timestamp) -> Self {
        Self {
            tenant,
            id: id.to_owned(),
            filter: String::new(),
            list: None,
            action,
            dry_run: false,
            state: BulkState::Running,
            caller: String::new(),
            reason: String::new(),
            counts: BulkCounts::default(),
            failures: Vec::new(),
            blockers: Vec::new(),
            create_time: now,
            update_time: now,
            end_time: None,
            end_reason: String::new(),
            batch: BulkBatch::default(),
            wait: None,
            lease: None,
            undo_until: None,
        }
    }

    /// Whether it is running.
    pub fn is_running(&self) -> bool {
        self.state == BulkState::Running
    }

    /// Whether a server has the right to change users at `now`. Only the present time counts, even
    /// if the clock is uncertain: no user changes by two servers, whoever has the lease.
    pub fn is_leased(&self, now: Timestamp) -> bool {
        self.lease.is_some_and(|lease| lease.until > now)
    }

    /// Whether it is being undone at `now`.
    pub fn is_undoing(&self, now: Timestamp) -> bool {
        self.undo_until.is_some_and(|until| until > now)
    }

    /// Whether no user changes by it, or by its undoing, at `now`.
    pub fn is_at_rest(&self, now: Timestamp) -> bool {
        !self.is_running() && !self.is_leased(now) && !self.is_undoing(now)
    }

    /// The time when a server looks at it next: to run it, or to remove it.
    pub fn due_time(&self) -> Timestamp {
        match self.end_time {
            Some(end) => end.plus(KEPT_FOR),
            None => self.lease.map_or(self.update_time, |lease| lease.until),
        }
    }

    /// Whether both make the same change. The users of undoings follow from their operation.
    pub fn is_same_change(&self, other: &Self) -> bool {
        (&self.filter, &self.action, self.dry_run) == (&other.filter, &other.action, other.dry_run)
            && (self.list == other.list || self.action.undone().is_some())
    }

    /// Stops it at `now`, whichever server runs it.
    pub fn stop(&mut self, reason: &str, now: Timestamp) {
        self.lease = None;
        self.end(BulkState::Stopped, reason, now);
        self.update_time = now.max(self.update_time);
    }

    /// Ends it at `now`.
    pub(crate) fn end(&mut self, state: BulkState, reason: &str, now: Timestamp) {
        self.state = state;
        self.wait = None;
        reason.clone_into(&mut self.end_reason);
        self.end_time = Some(now);
    }

    /// Runs it again.
    pub(crate) fn resume(&mut self, caller: &str) {
        self.state = BulkState::Running;
        caller.clone_into(&mut self.caller);
        self.end_reason.clear();
        self.end_time = None;
        self.undo_until = None;
    }
}
