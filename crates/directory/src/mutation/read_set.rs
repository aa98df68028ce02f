//! The data that a store and the rules exchange for a mutation: read set, read requests, write set.

mod decide_error;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use locality_uuid::LocalityId;

use crate::error::Error;
use crate::history_part::{HistoryEvents, HistoryPart};
use crate::model::bulk::{change::BulkChange, progress::BulkEffect, reads::BulkReads};
use crate::model::claim::{Claim, ClaimWrite};
use crate::model::delivery::{reads::DeliveryReads, record::EventDelivery};
use crate::model::event::Event;
use crate::model::imported_user::Imported;
use crate::model::merge_report::{NotRestored, Preview};
use crate::model::notice::Notice;
use crate::model::ownership::{Ownership, Takeover};
use crate::model::record::Record;
use crate::model::tenant_event::TenantEvent;
use crate::model::tenant_record::TenantRecord;
use crate::model::user::User;
use crate::purge_progress::PurgeProgress;
pub use decide_error::DecideError;
use polynym_identifier::IdentityKey;

/// The data that a store has read for a mutation, in one snapshot.
#[derive(Clone, Debug, Default)]
pub struct ReadSet {
    pub(super) users: HashMap<LocalityId, Option<Record>>,
    pub(super) claims: HashMap<IdentityKey, Option<Claim>>,
    histories: HashMap<HistoryPart, HistoryEvents>,
    tenant: Option<Option<TenantRecord>>,
    has_members: Option<bool>,
    /// The bulk changes of the mutation's tenant.
    pub bulk: BulkReads,
    /// The deliveries of the mutation's tenant.
    pub deliveries: DeliveryReads,
    is_optimistic: bool,
}

/// The reads that a decision still needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadRequest {
    /// Users, by their ids.
    pub users: Vec<LocalityId>,
    /// Claims, by their keys.
    pub claims: Vec<IdentityKey>,
    /// Parts of the histories of users. The users are read before, or with them.
    pub histories: Vec<HistoryPart>,
    /// Whether to read the mutation's tenant.
    pub tenant: bool,
    /// Whether to read if the tenant has users.
    pub members: bool,
    /// The id of a bulk change of the mutation's tenant.
    pub bulk_change: Option<String>,
    /// The id of the bulk change of the mutation's tenant that is undone.
    pub undone_bulk_change: Option<String>,
    /// Whether to count the running bulk changes of the mutation's tenant.
    pub running_bulk_changes: bool,
    /// The id of a delivery of the mutation's tenant.
    pub delivery: Option<String>,
    /// Whether to count the deliveries of the mutation's tenant.
    pub count_deliveries: bool,
}

/// The result of [`Mutation::decide`](crate::mutation::Mutation::decide).
#[derive(Debug)]
pub enum Decision {
    /// The decision needs these reads. None of them is in the read set.
    NeedsReads(ReadRequest),
    /// The decision.
    Ready(Box<WriteSet>),
}

/// The outcome of a decision: writes for one transaction, and the answer to the caller.
#[derive(Debug)]
pub struct WriteSet {
    /// The writes: users by id, then claims by key, so that concurrent transactions conflict early.
    pub writes: Vec<Write>,
    /// The events of the stored users, for their histories. The store numbers them.
    pub events: Vec<Event>,
    /// The identities that users lost to others.
    pub takeovers: Vec<Takeover>,
    /// The user that the answer is about. The request is remembered with it.
    pub subject: Option<LocalityId>,
    /// Whether the mutation repeats a request that took effect.
    pub(crate) is_repeated: bool,
    /// The subject, if it is not written.
    pub(crate) unchanged: Option<User>,
    pub(crate) report: MutationReport,
    /// What a mutation of a trial would write.
    pub(crate) foreseen: Vec<Write>,
}

/// One write. A store has one arm for each.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Stores a user. It is new if the read set does not have it.
    PutUser(Box<Record>),
    /// Removes a user. The read set has it.
    RemoveUser(LocalityId),
    /// Writes a claim.
    Claim(IdentityKey, ClaimWrite),
    /// Adds to the ended ownerships of a key. Removing a user also removes its ended ownerships,
    /// without another write.
    EndOwnership(IdentityKey, Box<Ownership>),
    /// Removes a user from the ended ownerships of a key.
    ForgetOwnership(IdentityKey, LocalityId),
    /// Replaces events of a part of a history by others with the same numbers, the newest first.
    /// The read set has the user and the part.
    ReplaceEvents(HistoryPart, Vec<Event>),
    /// Removes the events of a user from a cursor on, the oldest part of its history. The read set
    /// has the user.
    RemoveEvents(LocalityId, u64),
    /// Adds an event to the history of the mutation's tenant, with its retention.
    AddTenantEvent(Box<TenantEvent>, Duration),
    /// Delivers a notice to a stored user.
    Notify(LocalityId, Box<Notice>),
    /// Stores the mutation's tenant. It is new if the read set does not have it.
    PutTenant(Box<TenantRecord>),
    /// Removes the mutation's tenant. The read set has it.
    RemoveTenant,
    /// Stores a bulk change of the mutation's tenant. It is new if the read set does not have it.
    PutBulkChange(Box<BulkChange>),
    /// Stores the users of a bulk change by a list, in place of those that it had.
    PutBulkUsers(String, Arc<[LocalityId]>),
    /// Removes the bulk change with this id, and its list. The read set has it.
    RemoveBulkChange(String),
    /// Stores a delivery of the mutation's tenant. It is new if the read set does not have it.
    PutDelivery(Box<EventDelivery>),
    /// Removes the delivery with this id. The read set has it.
    RemoveDelivery(String),
    /// Increments the counter with this name.
    #[cfg(feature = "test-entity")]
    Count(String),
}

/// The answer to the caller of a mutation.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The present user; `None` if the mutation has no subject or removed it.
    pub user: Option<User>,
    /// Further results.
    pub report: MutationReport,
    /// The identities that users lost to others.
    pub takeovers: Vec<Takeover>,
    /// What a mutation of a trial would write.
    pub foreseen: Vec<Write>,
}

/// The results of a mutation besides the user.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum MutationReport {
    /// None.
    #[default]
    Nothing,
    /// The result that a merge would have. Only of dry runs.
    Preview(Box<Preview>),
    /// The parts that undoing a merge could not restore.
    NotRestored(Vec<NotRestored>),
    /// The users that were removed.
    Purged(Vec<LocalityId>),
    /// A purge has read the maximum of events of one transaction, and must be repeated with this
    /// [progress](crate::mutation::Mutation::purge).
    PurgeBegun(Arc<PurgeProgress>),
    /// The result of importing a user.
    Imported(Imported),
    /// The number of users that an undoing made what they were: the user, and others with it.
    Reverted(u64),
    /// The present tenant.
    Tenant(Box<TenantRecord>),
    /// The present bulk change.
    BulkChange(Box<BulkChange>),
    /// The effect of a bulk change on the user.
    BulkUser(BulkEffect),
    /// The present delivery.
    Delivery(Box<EventDelivery>),
}

impl MutationReport {
    /// Whether the mutation must be repeated.
    pub const fn is_partial(&self) -> bool {
        matches!(self, Self::PurgeBegun(_))
    }
}

/// The state of a record in a read set.
pub(crate) enum ReadState<'v, T> {
    /// It was not read.
    Unread,
    /// It was read and does not exist.
    Absent,
    /// It was read.
    Present(&'v T),
}

impl ReadSet {
    /// A read set that takes unread claims and new users for absent. For stores in which a failing
    /// insert costs less than a read.
    pub fn optimistic() -> Self {
        Self { is_optimistic: true, ..Self::default() }
    }

    /// Adds a user, or its absence.
    pub fn add_user(&mut self, id: LocalityId, record: Option<Record>) {
        self.users.insert(id, record);
    }

    /// Adds a claim, or its absence.
    pub fn add_claim(&mut self, key: IdentityKey, claim: Option<Claim>) {
        self.claims.insert(key, claim);
    }

    /// Adds a part of the history of a user.
    pub fn add_history(&mut self, part: HistoryPart, events: HistoryEvents) {
        self.histories.insert(part, events);
    }

    /// Sets the mutation's tenant, or its absence.
    pub fn set_tenant(&mut self, tenant: Option<TenantRecord>) {
        self.tenant = Some(tenant);
    }

    /// Sets whether the mutation's tenant has users.
    pub const fn set_members(&mut self, has_members: bool) {
        self.has_members = Some(has_members);
    }

    /// The user, if it was read and exists.
    pub fn user(&self, id: LocalityId) -> Option<&Record> {
        self.users.get(&id)?.as_ref()
    }

    /// The user. Needs the read.
    pub(crate) fn read_user(&self, id: LocalityId) -> Result<Option<&Record>, DecideError> {
        self.users.get(&id).map(Option::as_ref).ok_or_else(|| {
            DecideError::from(ReadRequest { users: vec![id], ..ReadRequest::default() })
        })
    }

    /// The users that exist. Needs all reads.
    pub(crate) fn read_users(&self, ids: &[LocalityId]) -> Result<Vec<&Record>, DecideError> {
        let users: Vec<_> = ids.iter().copied().filter(|id| !self.users.contains_key(id)).collect();
        if users.is_empty() {
            return Ok(ids.iter().filter_map(|id| self.user(*id)).collect());
        }
        Err(DecideError::from(ReadRequest { users, ..ReadRequest::default() }))
    }

    /// A part of the history of a user. Needs the read.
    pub(crate) fn read_history(&self, part: HistoryPart) -> Result<&HistoryEvents, DecideError> {
        self.histories.get(&part).ok_or_else(|| {
            DecideError::from(ReadRequest { histories: vec![part], ..ReadRequest::default() })
        })
    }

    /// Needs the reads of these parts of histories.
    pub(crate) fn read_histories(&self, parts: &[HistoryPart]) -> Result<(), DecideError> {
        let histories: Vec<_> =
            parts.iter().copied().filter(|part| !self.histories.contains_key(part)).collect();
        if histories.is_empty() {
            return Ok(());
        }
        Err(DecideError::from(ReadRequest { histories, ..ReadRequest::default() }))
    }

    /// The claims that exist, with their keys. Needs all reads.
    pub(crate) fn read_claims(
        &self,
        keys: Vec<IdentityKey>,
    ) -> Result<Vec<(IdentityKey, &Claim)>, DecideError> {
        if keys.iter().all(|key| self.claims.contains_key(key)) {
            let claims = keys.into_iter().filter_map(|key| Some((self.claims.get(&key)?, key)));
            return Ok(claims.filter_map(|(claim, key)| Some((key, claim.as_ref()?))).collect());
        }
        let claims = keys.into_iter().filter(|key| !self.claims.contains_key(key)).collect();
        Err(DecideError::from(ReadRequest { claims, ..ReadRequest::default() }))
    }

    /// The mutation's tenant. Needs the read.
    pub(crate) fn read_tenant(&self) -> Result<Option<&TenantRecord>, DecideError> {
        self.tenant.as_ref().map(Option::as_ref).ok_or_else(|| {
            DecideError::from(ReadRequest { tenant: true, ..ReadRequest::default() })
        })
    }

    /// Whether the mutation's tenant has users. Needs the read.
    pub(crate) fn has_members(&self) -> Result<bool, DecideError> {
        self.has_members.ok_or_else(|| {
            DecideError::from(ReadRequest { members: true, ..ReadRequest::default() })
        })
    }

    /// The user with a new id, which should not exist.
    pub(crate) fn read_new_user(&self, id: LocalityId) -> Result<Option<&Record>, DecideError> {
        if self.is_optimistic { Ok(self.user(id)) } else { self.read_user(id) }
    }

    /// The state of a key to claim. With `only_read`, an unread key is not taken for free.
    pub(crate) fn claim(&self, key: &IdentityKey, only_read: bool) -> ReadState<'_, Claim> {
        match self.claims.get(key) {
            Some(Some(claim)) => ReadState::Present(claim),
            None if only_read || !self.is_optimistic => ReadState::Unread,
            Some(None) | None => ReadState::Absent,
        }
    }
}

impl WriteSet {
    /// A write set without writes, about this user.
    pub(crate) const fn unchanged(subject: Option<LocalityId>) -> Self {
        Self {
            writes: Vec::new(),
            events: Vec::new(),
            takeovers: Vec::new(),
            subject,
            is_repeated: false,
            unchanged: None,
            report: MutationReport::Nothing,
            foreseen: Vec::new(),
        }
    }

    /// The users to store.
    pub fn users(&self) -> impl Iterator<Item = &Record> {
        self.writes.iter().filter_map(|write| match write {
            Write::PutUser(record) => Some(&**record),
            _ => None,
        })
    }

    /// The ids of the users to remove.
    pub fn removed_users(&self) -> impl Iterator<Item = LocalityId> {
        self.writes.iter().filter_map(|write| match write {
            Write::RemoveUser(id) => Some(*id),
            _ => None,
        })
    }

    /// Whether the mutation must be repeated. Its request is not remembered yet.
    pub fn is_partial(&self) -> bool {
        self.report.is_partial()
    }

    /// Whether a store remembers the mutation's request with these writes. A bulk change remembers
    /// the users that it has changed.
    pub fn completes_request(&self) -> bool {
        let changes = match self.report {
            MutationReport::BulkUser(effect) => effect == BulkEffect::Changed,
            _ => true,
        };
        changes && !self.is_repeated && !self.is_partial()
    }

    /// The user to store with this id.
    pub(crate) fn user(&self, id: LocalityId) -> Option<&User> {
        self.users().find(|record| record.id() == id).map(|record| &record.user)
    }

    /// The event of a user, if its history gets one.
    pub fn event(&self, id: LocalityId) -> Option<&Event> {
        self.events.iter().find(|event| event.user == id)
    }

    /// The outcome for the caller, after the writes.
    pub fn into_outcome(self) -> Outcome {
        let written = self.subject.and_then(|subject| self.user(subject).cloned());
        let Self { unchanged, report, takeovers, foreseen, .. } = self;
        Outcome { user: unchanged.or(written), report, takeovers, foreseen }
    }
}

impl Outcome {
    /// The user.
    ///
    /// # Errors
    /// [`Error::Internal`] if the mutation had no subject.
    pub fn into_user(self) -> Result<User, Error> {
        self.user.ok_or_else(|| Error::Internal("a mutation of a user without its user".into()))
    }
}
