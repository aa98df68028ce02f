//! The data that passes between the rules and a store while a mutation is decided: the read set,
//! further reads, and the write set.

use std::collections::HashMap;
use std::time::Duration;

use locality_uuid::LocalityId;

use crate::error::Error;
use crate::model::claim::{Claim, ClaimWrite};
use crate::model::event::Event;
use crate::model::imported_user::Imported;
use crate::model::merge_report::{NotRestored, Preview};
use crate::model::notice::Notice;
use crate::model::ownership::Ownership;
use crate::model::record::Record;
use crate::model::tenant_event::TenantEvent;
use crate::model::tenant_record::TenantRecord;
use crate::model::user::User;
use polynym_identifier::IdentityKey;

/// The data that a store has read for a mutation, all of it at one moment.
#[derive(Debug, Default)]
pub struct ReadSet {
    users: HashMap<LocalityId, Option<Record>>,
    claims: HashMap<IdentityKey, Option<Claim>>,
    histories: HashMap<LocalityId, Vec<Event>>,
    tenant: Option<Option<TenantRecord>>,
    has_members: Option<bool>,
    is_optimistic: bool,
}

/// The reads that a decision still needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadRequest {
    /// Users, by their ids.
    pub users: Vec<LocalityId>,
    /// Claims, by their keys.
    pub claims: Vec<IdentityKey>,
    /// The histories of users, by their ids. The users were read before, or are read as well.
    pub histories: Vec<LocalityId>,
    /// Whether the mutation's tenant must be read.
    pub tenant: bool,
    /// Whether it must be known if the tenant has users.
    pub members: bool,
}

/// The result of [`Mutation::decide`](crate::mutation::Mutation::decide).
#[derive(Debug)]
pub enum Decision {
    /// No decision yet: these reads come first. None of them is in the read set.
    NeedsReads(ReadRequest),
    /// The decision.
    Ready(Box<WriteSet>),
}

/// The outcome of a decision: writes for one transaction, and the answer to the caller.
#[derive(Debug)]
pub struct WriteSet {
    /// The writes. Users come first, by id, then claims, by key: concurrent transactions that write
    /// the same conflict early.
    pub writes: Vec<Write>,
    /// The events of the users that are stored, for their histories. A store numbers them.
    pub events: Vec<Event>,
    /// The identities that went from one user to another.
    pub takeovers: Vec<Takeover>,
    /// The user that the answer is about. A request is remembered with it.
    pub subject: Option<LocalityId>,
    /// The subject, if it is not written.
    pub(crate) unchanged: Option<User>,
    pub(crate) report: MutationReport,
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
    /// Adds to the ended ownerships of a key. Such of users that are removed are forgotten with
    /// them, without a write of their own.
    EndOwnership(IdentityKey, Box<Ownership>),
    /// Takes a user out of the ended ownerships of a key.
    ForgetOwnership(IdentityKey, LocalityId),
    /// Replaces events of a user by others of the same numbers. The read set has the user and its
    /// history.
    ReplaceEvents(LocalityId, Vec<Event>),
    /// Adds an event to the history of the mutation's tenant, to be kept for this time.
    AddTenantEvent(Box<TenantEvent>, Duration),
    /// Delivers a notice to a user that is stored.
    Notify(LocalityId, Box<Notice>),
    /// Stores the mutation's tenant. It is new if the read set does not have it.
    PutTenant(Box<TenantRecord>),
    /// Removes the mutation's tenant. The read set has it.
    RemoveTenant,
    /// Adds one to the counter with this name.
    #[cfg(feature = "test-entity")]
    Count(String),
}

/// A user lost an unverified identity to another, who had it verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Takeover {
    /// The user who has the identity now.
    pub winner: LocalityId,
    /// The user who had it before.
    pub loser: LocalityId,
}

/// The answer to the caller of a mutation.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The user as it is now; none if the mutation has no subject, or has removed it.
    pub user: Option<User>,
    /// Further results.
    pub report: MutationReport,
    /// The identities that went from one user to another.
    pub takeovers: Vec<Takeover>,
}

/// The results of a mutation beside the user.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum MutationReport {
    /// None.
    #[default]
    Nothing,
    /// The result that a merge would have. Of dry runs alone.
    Preview(Box<Preview>),
    /// The parts that undoing a merge could not restore.
    NotRestored(Vec<NotRestored>),
    /// The users that were removed.
    Purged(Vec<LocalityId>),
    /// A purge has rewritten as many events of other users as one transaction may: it is to be
    /// carried out again.
    PurgeBegun,
    /// The result of importing a user.
    Imported(Imported),
    /// The tenant as it is now.
    Tenant(Box<TenantRecord>),
}

/// Why a decision ends early.
pub enum DecideError {
    /// It needs further reads.
    NeedsReads(ReadRequest),
    /// The mutation is rejected.
    Rejected(Error),
}

impl From<Error> for DecideError {
    fn from(error: Error) -> Self {
        Self::Rejected(error)
    }
}

/// The state of a record in a read set.
pub(crate) enum ReadState<'v, T> {
    /// It was not read.
    Unread,
    /// That it is not there.
    Absent,
    There(&'v T),
}

impl ReadSet {
    /// A read set that takes what was not read for absent: claims, and the user of a new id. For
    /// stores in which reading costs more than finding out, when they write, that something was
    /// there after all.
    pub fn optimistic() -> Self {
        Self { is_optimistic: true, ..Self::default() }
    }

    /// Adds what was read of a user.
    pub fn add_user(&mut self, id: LocalityId, record: Option<Record>) {
        self.users.insert(id, record);
    }

    /// Adds what was read of a claim.
    pub fn add_claim(&mut self, key: IdentityKey, claim: Option<Claim>) {
        self.claims.insert(key, claim);
    }

    /// Adds the events of a user, the newest first.
    pub fn add_history(&mut self, id: LocalityId, events: Vec<Event>) {
        self.histories.insert(id, events);
    }

    /// Adds what was read of the mutation's tenant.
    pub fn set_tenant(&mut self, tenant: Option<TenantRecord>) {
        self.tenant = Some(tenant);
    }

    /// Adds whether the mutation's tenant has users.
    pub const fn set_members(&mut self, has_members: bool) {
        self.has_members = Some(has_members);
    }

    /// The user, if it was read and is there.
    pub fn user(&self, id: LocalityId) -> Option<&Record> {
        self.users.get(&id)?.as_ref()
    }

    /// The user, who must be read.
    pub(crate) fn read_user(&self, id: LocalityId) -> Result<Option<&Record>, DecideError> {
        let user = self.users.get(&id).map(Option::as_ref);
        user.ok_or_else(|| {
            DecideError::NeedsReads(ReadRequest { users: vec![id], ..ReadRequest::default() })
        })
    }

    /// Those of the users that are there; all must be read.
    pub(crate) fn read_users(&self, ids: &[LocalityId]) -> Result<Vec<&Record>, DecideError> {
        let users: Vec<_> = ids.iter().copied().filter(|id| !self.users.contains_key(id)).collect();
        if users.is_empty() {
            return Ok(ids.iter().filter_map(|id| self.user(*id)).collect());
        }
        Err(DecideError::NeedsReads(ReadRequest { users, ..ReadRequest::default() }))
    }

    /// The events of users, the newest first; all must be read.
    pub(crate) fn read_histories(&self, ids: &[LocalityId]) -> Result<Vec<&[Event]>, DecideError> {
        let is_unread = |id: &LocalityId| !self.histories.contains_key(id);
        let histories: Vec<_> = ids.iter().copied().filter(is_unread).collect();
        if histories.is_empty() {
            let events = |id| self.histories.get(id).map(Vec::as_slice);
            return Ok(ids.iter().filter_map(events).collect());
        }
        Err(DecideError::NeedsReads(ReadRequest { histories, ..ReadRequest::default() }))
    }

    /// Those of the keys under which there is a claim, with it; all must be read.
    pub(crate) fn read_claims(
        &self,
        keys: Vec<IdentityKey>,
    ) -> Result<Vec<(IdentityKey, &Claim)>, DecideError> {
        if keys.iter().all(|key| self.claims.contains_key(key)) {
            let claim =
                |key: IdentityKey| self.claims.get(&key)?.as_ref().map(|claim| (key, claim));
            return Ok(keys.into_iter().filter_map(claim).collect());
        }
        let claims = keys.into_iter().filter(|key| !self.claims.contains_key(key)).collect();
        Err(DecideError::NeedsReads(ReadRequest { claims, ..ReadRequest::default() }))
    }

    /// The mutation's tenant, which must be read.
    pub(crate) fn read_tenant(&self) -> Result<Option<&TenantRecord>, DecideError> {
        let tenant = self.tenant.as_ref().map(Option::as_ref);
        tenant.ok_or_else(|| {
            DecideError::NeedsReads(ReadRequest { tenant: true, ..ReadRequest::default() })
        })
    }

    /// Whether the mutation's tenant has users, which must be read.
    pub(crate) fn has_members(&self) -> Result<bool, DecideError> {
        self.has_members.ok_or_else(|| {
            DecideError::NeedsReads(ReadRequest { members: true, ..ReadRequest::default() })
        })
    }

    /// The user with a new id, which should not exist.
    pub(crate) fn read_new_user(&self, id: LocalityId) -> Result<Option<&Record>, DecideError> {
        if self.is_optimistic { Ok(self.user(id)) } else { self.read_user(id) }
    }

    /// The state of a key that is to be claimed. With `only_read`, an unread key does not count as
    /// free.
    pub(crate) fn claim(&self, key: &IdentityKey, only_read: bool) -> ReadState<'_, Claim> {
        match self.claims.get(key) {
            Some(Some(claim)) => ReadState::There(claim),
            None if only_read || !self.is_optimistic => ReadState::Unread,
            Some(None) | None => ReadState::Absent,
        }
    }
}

impl WriteSet {
    /// A write set that changes nothing, about this user.
    pub(crate) const fn unchanged(subject: Option<LocalityId>) -> Self {
        Self {
            writes: Vec::new(),
            events: Vec::new(),
            takeovers: Vec::new(),
            subject,
            unchanged: None,
            report: MutationReport::Nothing,
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

    /// Whether the mutation is to be carried out again. Its request is not remembered then.
    pub fn is_partial(&self) -> bool {
        self.report == MutationReport::PurgeBegun
    }

    /// The user to store with this id.
    pub(crate) fn user(&self, id: LocalityId) -> Option<&User> {
        self.users().find(|record| record.id() == id).map(|record| &record.user)
    }

    /// The event of a user, if its history gets one.
    pub fn event(&self, id: LocalityId) -> Option<&Event> {
        self.events.iter().find(|event| event.user == id)
    }

    /// The outcome for the caller, once everything is written.
    pub fn into_outcome(self) -> Outcome {
        let written = self.subject.and_then(|subject| self.user(subject).cloned());
        Outcome { user: self.unchanged.or(written), report: self.report, takeovers: self.takeovers }
    }
}

impl Outcome {
    /// The user.
    ///
    /// # Errors
    /// [`Error::Internal`] where the mutation was about none.
    pub fn into_user(self) -> Result<User, Error> {
        self.user.ok_or_else(|| Error::Internal("a mutation of a user without its user".into()))
    }
}
