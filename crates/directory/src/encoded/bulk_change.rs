//! The encoded forms of bulk changes, in stores and in the API's messages.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use locality_uuid::LocalityId;
use prost::Message;

use crate::encoded::decode::{read_tenant, read_time, read_value};
use crate::encoded::encode::{time_message, value_message};
use crate::encoded::error::WireError;
use crate::error::Blocker;
use crate::model::bulk::change::{BulkAction, BulkChange, BulkList, BulkState, BulkWait};
use crate::model::bulk::lease::Lease;
use crate::model::bulk::progress::{BulkBatch, BulkBlocker, BulkCounts, BulkFailure};
use crate::timestamp::Timestamp;
use polynym_proto::v1;
use polynym_proto::v1::bulk_action::{Action, Attributes, Delete, Disable, Enable, Undelete, Undo};

/// The bytes of an id.
const ID_BYTES: usize = 16;

/// A bulk change in a store.
#[derive(Clone, PartialEq, Message)]
struct StoredChange {
    /// Without its failures.
    #[prost(message, optional, tag = "1")]
    change: Option<v1::BulkChange>,
    #[prost(message, repeated, tag = "2")]
    failures: Vec<StoredFailure>,
    /// The ids of the users of the batch, one after the other.
    #[prost(bytes = "vec", tag = "3")]
    batch: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    cursor: Vec<u8>,
    #[prost(bool, tag = "5")]
    is_last: bool,
    #[prost(message, optional, tag = "6")]
    lease: Option<StoredLease>,
    /// The time when the wait began whose reason is in `change`.
    #[prost(sint64, optional, tag = "7")]
    wait_since: Option<i64>,
    #[prost(sint64, optional, tag = "8")]
    undo_until: Option<i64>,
    /// The digest of the list whose number of users is in `change`.
    #[prost(bytes = "vec", optional, tag = "9")]
    list_digest: Option<Vec<u8>>,
    /// The users of earlier lists, which `change` counts too, and whether another list follows.
    #[prost(uint64, tag = "10")]
    met_before: u64,
    #[prost(bool, tag = "11")]
    is_partial: bool,
    #[prost(message, repeated, tag = "12")]
    blockers: Vec<StoredBlocker>,
}

#[derive(Clone, PartialEq, Message)]
struct StoredFailure {
    #[prost(bytes = "vec", tag = "1")]
    user: Vec<u8>,
    #[prost(string, tag = "2")]
    reason: String,
}

#[derive(Clone, PartialEq, Message)]
struct StoredBlocker {
    #[prost(message, optional, tag = "1")]
    blocker: Option<v1::bulk_change::Blocker>,
    #[prost(uint64, tag = "2")]
    place: u64,
}

#[derive(Clone, PartialEq, Message)]
struct StoredLease {
    #[prost(bytes = "vec", tag = "1")]
    owner: Vec<u8>,
    #[prost(sint64, tag = "2")]
    until: i64,
}

impl BulkChange {
    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        let failure = |failure: &BulkFailure| StoredFailure {
            user: failure.user.as_bytes().to_vec(),
            reason: failure.reason.clone(),
        };
        let lease = self.lease.map(|lease| StoredLease {
            owner: lease.owner.as_bytes().to_vec(),
            until: lease.until.as_millis(),
        });
        StoredChange {
            change: Some(summary(self)),
            failures: self.failures.iter().map(failure).collect(),
            batch: encode_users(&self.batch.users),
            cursor: self.batch.cursor.clone(),
            is_last: self.batch.is_last,
            lease,
            wait_since: self.wait.as_ref().map(|wait| wait.since.as_millis()),
            undo_until: self.undo_until.map(Timestamp::as_millis),
            list_digest: self.list.map(|list| list.digest.to_be_bytes().to_vec()),
            met_before: self.list.map_or(0, |list| list.met_before),
            is_partial: self.list.is_some_and(|list| list.is_partial),
            blockers: self.blockers.iter().map(stored_blocker).collect(),
        }
        .encode_to_vec()
    }

    /// Decodes the stored form of the bulk change of this tenant with this id.
    ///
    /// # Errors
    /// [`WireError`] if it is damaged, or that of another one.
    pub fn decode((tenant, id): (&str, &str), bytes: &[u8]) -> Result<Self, WireError> {
        let stored = StoredChange::decode(bytes).map_err(|error| WireError(error.to_string()))?;
        let change = stored.change.ok_or_else(|| WireError("a bulk change without it".into()))?;
        let (wait_reason, users) = (change.wait_reason.clone(), change.listed_users);
        let summary = read_summary(change)?;
        if (summary.tenant.as_str(), &*summary.id) != (tenant, id) {
            return Err(WireError("a bulk change of another tenant or id".into()));
        }
        let failure = |failure: StoredFailure| {
            Ok(BulkFailure { user: read_id(&failure.user)?, reason: failure.reason })
        };
        let lease = |lease: StoredLease| {
            let until = Timestamp::from_millis(lease.until);
            Ok(Lease { owner: read_id(&lease.owner)?, until })
        };
        let wait = |since| BulkWait { reason: wait_reason, since: Timestamp::from_millis(since) };
        let list = |digest: Vec<u8>| {
            let digest = <[u8; 16]>::try_from(digest);
            let digest = digest.map_err(|_| WireError("a malformed digest".to_owned()))?;
            Ok(BulkList {
                users: number(users).saturating_sub(stored.met_before),
                digest: u128::from_be_bytes(digest),
                met_before: stored.met_before,
                is_partial: stored.is_partial,
            })
        };
        Ok(Self {
            list: stored.list_digest.map(list).transpose()?,
            failures: stored.failures.into_iter().map(failure).collect::<Result<_, WireError>>()?,
            blockers: stored.blockers.into_iter().map(read_blocker).collect(),
            batch: BulkBatch {
                users: decode_users(&stored.batch)?,
                cursor: stored.cursor,
                is_last: stored.is_last,
            },
            wait: stored.wait_since.map(wait),
            lease: stored.lease.map(lease).transpose()?,
            undo_until: stored.undo_until.map(Timestamp::from_millis),
            ..summary
        })
    }
}

/// A bulk change as the API's message.
pub fn bulk_change_message(change: &BulkChange) -> v1::BulkChange {
    let failure = |failure: &BulkFailure| v1::bulk_change::Failure {
        user_id: failure.user.to_string(),
        reason: failure.reason.clone(),
    };
    let mut blockers: Vec<_> = change.blockers.iter().collect();
    blockers.sort_by_key(|one| (one.place, Reverse(one.users)));
    v1::BulkChange {
        failures: change.failures.iter().map(failure).collect(),
        blockers: blockers.into_iter().map(blocker_message).collect(),
        ..summary(change)
    }
}

/// A bulk change as the API's message, without its failures and what they are due to.
pub fn summary(change: &BulkChange) -> v1::BulkChange {
    v1::BulkChange {
        bulk_id: change.id.clone(),
        tenant: change.tenant.as_str().to_owned(),
        filter: change.filter.clone(),
        listed_users: change.list.map_or(0, |list| list.total() as i64),
        action: Some(action_message(&change.action)),
        validate_only: change.dry_run,
        state: state_message(change.state).into(),
        caller: change.caller.clone(),
        reason: change.reason.clone(),
        counts: Some(counts_message(&change.counts)),
        failures: Vec::new(),
        blockers: Vec::new(),
        create_time: Some(time_message(change.create_time)),
        update_time: Some(time_message(change.update_time)),
        end_time: change.end_time.map(time_message),
        end_reason: change.end_reason.clone(),
        wait_reason: change.wait.as_ref().map(|wait| wait.reason.clone()).unwrap_or_default(),
    }
}

fn read_summary(message: v1::BulkChange) -> Result<BulkChange, WireError> {
    Ok(BulkChange {
        tenant: read_tenant(&message.tenant)?,
        state: read_state(message.state())?,
        action: read_action(message.action)?,
        id: message.bulk_id,
        filter: message.filter,
        list: None,
        dry_run: message.validate_only,
        caller: message.caller,
        reason: message.reason,
        counts: read_counts(message.counts.unwrap_or_default()),
        failures: Vec::new(),
        blockers: Vec::new(),
        create_time: read_time(message.create_time),
        update_time: read_time(message.update_time),
        end_time: message.end_time.map(|time| read_time(Some(time))),
        end_reason: message.end_reason,
        batch: BulkBatch::default(),
        wait: None,
        lease: None,
        undo_until: None,
    })
}

fn action_message(action: &BulkAction) -> v1::BulkAction {
    let action = match action {
        BulkAction::Disable => Action::Disable(Disable {}),
        BulkAction::Enable => Action::Enable(Enable {}),
        BulkAction::Delete => Action::Delete(Delete {}),
        BulkAction::Undelete => Action::Undelete(Undelete {}),
        BulkAction::Attributes(edits) => {
            let set = edits
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), value_message(value.as_ref()?))));
            let removed = edits.iter().filter(|(_, value)| value.is_none());
            Action::Attributes(Attributes {
                set: set.collect(),
                remove: removed.map(|(name, _)| name.clone()).collect(),
            })
        }
        BulkAction::Undo(operation_id) => Action::Undo(Undo { operation_id: operation_id.clone() }),
    };
    v1::BulkAction { action: Some(action) }
}

fn read_action(message: Option<v1::BulkAction>) -> Result<BulkAction, WireError> {
    let action = message.and_then(|message| message.action);
    Ok(match action.ok_or_else(|| WireError("a bulk change without an action".into()))? {
        Action::Disable(_) => BulkAction::Disable,
        Action::Enable(_) => BulkAction::Enable,
        Action::Delete(_) => BulkAction::Delete,
        Action::Undelete(_) => BulkAction::Undelete,
        Action::Attributes(attributes) => {
            let mut edits: BTreeMap<_, _> =
                attributes.remove.into_iter().map(|name| (name, None)).collect();
            for (name, value) in attributes.set {
                let value = read_value(value);
                let value =
                    value.ok_or_else(|| WireError("an attribute without a value".into()))?;
                edits.insert(name, Some(value));
            }
            BulkAction::Attributes(edits)
        }
        Action::Undo(Undo { operation_id }) => BulkAction::Undo(operation_id),
    })
}

fn stored_blocker(one: &BulkBlocker) -> StoredBlocker {
    StoredBlocker { blocker: Some(blocker_message(one)), place: one.place }
}

fn read_blocker(stored: StoredBlocker) -> BulkBlocker {
    let message = stored.blocker.unwrap_or_default();
    let users = number(message.users);
    let v1::bulk_change::Blocker { operation_id, caller, method, .. } = message;
    BulkBlocker { blocker: Blocker { operation_id, caller, method }, users, place: stored.place }
}

fn blocker_message(one: &BulkBlocker) -> v1::bulk_change::Blocker {
    let Blocker { operation_id, caller, method } = one.blocker.clone();
    v1::bulk_change::Blocker { operation_id, caller, method, users: one.users as i64 }
}

const fn state_message(state: BulkState) -> v1::BulkChangeState {
    match state {
        BulkState::Running => v1::BulkChangeState::Running,
        BulkState::Stopped => v1::BulkChangeState::Stopped,
        BulkState::Completed => v1::BulkChangeState::Completed,
        BulkState::Failed => v1::BulkChangeState::Failed,
    }
}

fn read_state(state: v1::BulkChangeState) -> Result<BulkState, WireError> {
    Ok(match state {
        v1::BulkChangeState::Unspecified => {
            return Err(WireError("a bulk change without a state".into()));
        }
        v1::BulkChangeState::Running => BulkState::Running,
        v1::BulkChangeState::Stopped => BulkState::Stopped,
        v1::BulkChangeState::Completed => BulkState::Completed,
        v1::BulkChangeState::Failed => BulkState::Failed,
    })
}

fn counts_message(counts: &BulkCounts) -> v1::bulk_change::Counts {
    let failed = |(reason, users): (&String, &u64)| v1::bulk_change::FailureCount {
        reason: reason.clone(),
        users: *users as i64,
    };
    v1::bulk_change::Counts {
        checked: counts.checked() as i64,
        changed: counts.changed as i64,
        unchanged: counts.unchanged as i64,
        skipped: counts.skipped as i64,
        failed: counts.failed.iter().map(failed).collect(),
    }
}

fn read_counts(message: v1::bulk_change::Counts) -> BulkCounts {
    BulkCounts {
        changed: number(message.changed),
        unchanged: number(message.unchanged),
        skipped: number(message.skipped),
        failed: message.failed.into_iter().map(|one| (one.reason, number(one.users))).collect(),
    }
}

fn number(users: i64) -> u64 {
    u64::try_from(users).unwrap_or_default()
}

/// The ids of users, one after the other.
pub fn encode_users(users: &[LocalityId]) -> Vec<u8> {
    users.iter().flat_map(|id| *id.as_bytes()).collect()
}

/// Reads what [`encode_users`] has written.
///
/// # Errors
/// [`WireError`] if it is damaged.
pub fn decode_users(bytes: &[u8]) -> Result<Vec<LocalityId>, WireError> {
    bytes.chunks(ID_BYTES).map(read_id).collect()
}

fn read_id(bytes: &[u8]) -> Result<LocalityId, WireError> {
    let id: [u8; ID_BYTES] =
        bytes.try_into().map_err(|_| WireError("a malformed id".to_owned()))?;
    Ok(LocalityId::from(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::attribute::Value;
    use crate::model::tenant::Tenant;

    #[test]
    fn a_stored_bulk_change_is_read_again() {
        let (user, time) = (LocalityId::from([7; ID_BYTES]), Timestamp::from_millis(1_000));
        let edits = [("team".to_owned(), Some(Value::Int(1))), ("room".to_owned(), None)];
        let change = BulkChange {
            tenant: Tenant::DEFAULT,
            id: "bulk-1".to_owned(),
            filter: "state = ACTIVE".to_owned(),
            list: Some(BulkList { met_before: 2, is_partial: true, ..BulkList::new(&[user]) }),
            action: BulkAction::Attributes(edits.into()),
            dry_run: true,
            state: BulkState::Failed,
            caller: "web".to_owned(),
            reason: "cleaning".to_owned(),
            counts: BulkCounts {
                changed: 1,
                unchanged: 2,
                skipped: 3,
                failed: [("LIMIT_EXCEEDED".to_owned(), 4)].into(),
            },
            failures: vec![BulkFailure { user, reason: "LIMIT_EXCEEDED".to_owned() }],
            blockers: vec![BulkBlocker {
                blocker: Blocker {
                    operation_id: "import-1".to_owned(),
                    caller: "ann".to_owned(),
                    method: "ImportUsers".to_owned(),
                },
                users: 3,
                place: 1,
            }],
            create_time: time,
            update_time: time,
            end_time: Some(time),
            end_reason: "FILTER_INVALID".to_owned(),
            batch: BulkBatch { users: vec![user, user], cursor: vec![1], is_last: true },
            wait: Some(BulkWait { reason: "STORE_UNAVAILABLE".to_owned(), since: time }),
            lease: Some(Lease { owner: user, until: time }),
            undo_until: Some(time),
        };
        let key = (Tenant::DEFAULT.as_str(), "bulk-1");
        assert_eq!(BulkChange::decode(key, &change.encode()).unwrap(), change);
        let undo = BulkChange { action: BulkAction::Undo("import-1".to_owned()), ..change.clone() };
        assert_eq!(BulkChange::decode(key, &undo.encode()).unwrap(), undo);
        assert!(BulkChange::decode(key, &[]).is_err());
        for other in [("other", "bulk-1"), (key.0, "bulk-2")] {
            assert!(BulkChange::decode(other, &change.encode()).is_err(), "{other:?}");
        }
    }
}
