//! Mutations as pure functions: from the data that a store has read to its writes.

pub mod bulk;
pub mod claim_diff;
mod decide;
pub mod hold;
pub mod import;
mod inverse;
pub mod journal;
pub mod merge;
pub mod merge_links;
pub mod operation_events;
pub mod purge;
pub mod read_set;
pub mod redaction;
pub mod reimport;
pub mod renormalize;
pub mod revert;
pub mod rule_notices;
pub mod takeover;
pub mod tenancy;
pub mod user_edits;

use std::sync::Arc;
use std::time::Duration;

use locality_uuid::LocalityId;

use super::clock::Now;
use super::error::Error;
use crate::limits::Limits;
use crate::model::delivery::step::DeliveryStep;
use crate::model::event::Origin;
use crate::model::imported_user::ImportedUser;
use crate::model::merge_report::ConflictPolicy;
use crate::model::new_user::{NewIdentity, NewUser};
use crate::model::policies::{Policies, PolicyUpdate};
use crate::model::record::{Hold, Record};
use crate::model::tenant::Tenant;
use crate::model::tenant_record::{DeletionStep, ImportedTenant};
use crate::model::user::{State, Verification};
use crate::mutation::read_set::{DecideError, MutationReport, ReadSet, WriteSet};
use crate::purge_progress::PurgeProgress;
use crate::size;
use crate::timestamp::Timestamp;
use crate::trial::Trial;
use crate::update_mask::Update;
use bulk::BulkStep;
use polynym_identifier::{Identifier, IdentityKey, Rules};

/// One change, with its preconditions and context.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutation {
    /// The tenant.
    pub tenant: Tenant,
    /// When the tenant was created: a later one of the same name has other attribute names.
    pub tenant_since: Timestamp,
    /// The etag that the user or the tenant must have, if given.
    pub etag: Option<String>,
    /// The idempotency key of the request, if given.
    pub request: Option<IdempotencyKey>,
    /// The present time.
    pub now: Now,
    /// The limits of a user.
    pub limits: Limits,
    /// The tenant's policies.
    pub policies: Arc<Policies>,
    /// The target rules of a renormalisation.
    pub rules: Rules,
    /// Whether the answer shows the result and nothing is written. Excludes `request`.
    pub dry_run: bool,
    /// The trial that this dry run is a part of: it is decided as after the earlier mutations.
    pub trial: Option<Arc<Trial>>,
    /// The progress of a purge in earlier transactions. A purge without it begins anew.
    pub purge: Option<Arc<PurgeProgress>>,
    /// The change.
    pub kind: MutationKind,
    /// The bulk change of which the mutation is a part.
    pub bulk: Option<bulk::BulkPart>,
    /// The call that requests it.
    pub origin: Origin,
    /// A counter that the mutation increments.
    #[cfg(feature = "test-entity")]
    pub counter: Option<String>,
}

/// The identity of a request (AIP-155). A store remembers it with the user for
/// [`IdempotencyKey::LIFETIME`] after the mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Tenant, method, request id and caller, encoded without ambiguity.
    pub key: String,
    /// A hash of the request's content. It distinguishes a retry from another request with the same
    /// id.
    pub request_hash: u64,
}

impl IdempotencyKey {
    /// The time for which the outcome of a request is remembered: 24 hours.
    pub const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

    /// Whether a request from `time` has expired, even if a store still has it.
    pub fn has_expired(time: Timestamp, now: Now) -> bool {
        now.is_past(time.plus(Self::LIFETIME))
    }

    /// Whether a request from `time` no longer counts, even if a store still has it: it has
    /// expired, or belongs to a deleted tenant of the same name, which was created at `since` and
    /// not at `tenant_since`. Some requests have no such time.
    pub fn is_void(
        (time, since): (Timestamp, Option<Timestamp>),
        tenant_since: Timestamp,
        now: Now,
    ) -> bool {
        Self::has_expired(time, now) || since.is_some_and(|since| since != tenant_since)
    }

    /// When the tenant of a request was created, as a store remembers it with the request; none if
    /// the tenant does not exist yet.
    pub fn stored_since(tenant_since: Timestamp) -> Option<Timestamp> {
        Some(tenant_since).filter(|since| *since != Timestamp::default())
    }

    /// The stored form of a request's subject: its id, or the nil UUID for `None`.
    pub fn stored_subject(subject: Option<LocalityId>) -> LocalityId {
        subject.unwrap_or(LocalityId::from([0; 16]))
    }

    /// The subject of a request, from its stored form.
    pub fn subject(stored: LocalityId) -> Option<LocalityId> {
        Some(stored).filter(|id| *id.as_bytes() != [0; 16])
    }
}

/// A request that took effect, as a store remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorRequest {
    /// The time when it took effect.
    pub time: Timestamp,
    /// The subject of its answer.
    pub subject: Option<LocalityId>,
    /// The time when its tenant was created, if the store knows.
    pub tenant_since: Option<Timestamp>,
}

/// The change that a mutation makes.
#[derive(Clone, Debug, PartialEq)]
pub enum MutationKind {
    /// Changes the user with this id.
    User(LocalityId, UserChange),
    /// Changes the tenant.
    Tenant(TenantChange),
    /// Ends the hold on an identifier.
    ReleaseHold(Identifier),
    /// Imports a hold for nobody, from an export.
    ImportHold(Hold),
    /// Takes a step of the bulk change with this id.
    Bulk(String, BulkStep),
    /// Takes a step of the delivery with this id.
    Delivery(String, DeliveryStep),
}

/// A change of one user. It may involve another.
#[derive(Clone, Debug, PartialEq)]
pub enum UserChange {
    /// Creates the user.
    Create(NewUser),
    /// Sets fields.
    Update(Update),
    /// Links an identity. If the user already has it, it gets the new verification if it has none,
    /// and becomes primary if requested.
    Link(NewIdentity),
    /// Unlinks an identity.
    Unlink(Identifier),
    /// Replaces the first identity with the second.
    Replace(Identifier, NewIdentity),
    /// Sets or clears the verification of an identity.
    Verify(Identifier, Option<Verification>),
    /// Disables the user.
    Disable,
    /// Enables the user.
    Enable,
    /// Deletes the user. It can be restored within the tenant's restore window.
    Delete,
    /// Restores the user.
    Undelete,
    /// Removes the user permanently, with the users that were merged into it.
    Purge,
    /// Merges the user with this id into the user.
    Merge(LocalityId, ConflictPolicy),
    /// Undoes the merge of the user with this id into the user.
    Unmerge(LocalityId),
    /// Moves an identity from the user with this id to the user.
    Move(LocalityId, Identifier),
    /// Purges the user, or drops the snapshot of its merge, if that is [due](Record::expires_at).
    Expire,
    /// Normalises an identity by the mutation's rules.
    Renormalize(Identifier),
    /// Creates the user from a line of an import, unless it exists.
    Import(Box<ImportedUser>),
    /// Makes the user what it was before an operation, unless it was changed since.
    Revert(operation_events::Reversal),
    /// Stores the user unchanged, so that the index of attributes follows the tenant's definitions.
    Reindex,
    /// Removes from the user's record what names users that it is not merged with.
    RemoveMergeFaults,
}

/// A change of a tenant.
#[derive(Clone, Debug, PartialEq)]
pub enum TenantChange {
    /// Sets policies, and creates the tenant if it does not exist.
    Set(PolicyUpdate),
    /// Creates the tenant from an export, unless it exists.
    Import(ImportedTenant),
    /// Takes a step of the tenant's deletion.
    Delete(DeletionStep),
    /// Marks the changes of definitions up to this time as applied to the index.
    FinishIndexChanges(Timestamp),
    /// Marks the shortening of the history's retention up to this time as applied.
    FinishHistoryChange(Timestamp),
}

impl MutationKind {
    /// The id of the changed user, and the change.
    pub const fn user(&self) -> Option<(LocalityId, &UserChange)> {
        match self {
            Self::User(id, change) => Some((*id, change)),
            Self::Tenant(_)
            | Self::ReleaseHold(_)
            | Self::ImportHold(_)
            | Self::Bulk(..)
            | Self::Delivery(..) => None,
        }
    }
}

impl Mutation {
    /// A mutation under the default limits and policies, without preconditions.
    pub fn new(tenant: Tenant, now: impl Into<Now>, kind: MutationKind) -> Self {
        Self {
            tenant,
            tenant_since: Timestamp::default(),
            etag: None,
            request: None,
            now: now.into(),
            limits: Limits::default(),
            policies: Arc::default(),
            rules: Rules::PRESENT,
            dry_run: false,
            trial: None,
            purge: None,
            kind,
            bulk: None,
            origin: Origin::server("job"),
            #[cfg(feature = "test-entity")]
            counter: None,
        }
    }

    /// A mutation of a user, under the default limits and policies, without preconditions.
    pub fn of_user(
        tenant: Tenant,
        id: LocalityId,
        now: impl Into<Now>,
        change: UserChange,
    ) -> Self {
        Self::new(tenant, now, MutationKind::User(id, change))
    }

    /// The user that the mutation changes.
    pub const fn user_id(&self) -> Option<LocalityId> {
        match self.kind.user() {
            Some((id, _)) => Some(id),
            None => None,
        }
    }

    /// The change of that user.
    pub const fn user_change(&self) -> Option<&UserChange> {
        match self.kind.user() {
            Some((_, change)) => Some(change),
            None => None,
        }
    }

    /// Whether it imports a user whose record names other users.
    pub fn names_other_users(&self) -> bool {
        matches!(self.user_change(), Some(UserChange::Import(imported)) if imported.names_others())
    }

    /// Whether a deadline has certainly passed.
    pub fn is_past(&self, deadline: Timestamp) -> bool {
        self.now.is_past(deadline)
    }

    /// Whether its request, which took effect at `time` in a tenant that was created at `since`, no
    /// longer counts: see [`IdempotencyKey::is_void`]. A mutation of a tenant learns only from its
    /// reads when the tenant was created: see [`Mutation::decide_again`].
    pub fn request_is_void(&self, time: Timestamp, since: Option<Timestamp>) -> bool {
        let is_of_tenant = matches!(self.kind, MutationKind::Tenant(_));
        let since = since.filter(|_| !is_of_tenant);
        IdempotencyKey::is_void((time, since), self.tenant_since, self.now)
    }

    /// The time when the tenant was created, as a store remembers it with the mutation's request.
    pub fn request_tenant_since(&self, write_set: &WriteSet) -> Option<Timestamp> {
        let since = match &write_set.report {
            MutationReport::Tenant(tenant) => tenant.since,
            _ => self.tenant_since,
        };
        IdempotencyKey::stored_since(since)
    }

    /// The size in bytes of the caller's input.
    pub fn bytes(&self) -> usize {
        if let MutationKind::Bulk(_, BulkStep::Start(_, users)) = &self.kind {
            return users.len() * size_of::<LocalityId>();
        }
        match self.user_change() {
            Some(UserChange::Create(new)) => {
                let identities: usize = new.identities.iter().map(size::new_identity).sum();
                new.display_name.len() + identities + size::attributes(&new.attributes)
            }
            Some(UserChange::Import(imported)) => size::imported(imported),
            Some(UserChange::Update(update)) => update.bytes(),
            Some(UserChange::Link(new) | UserChange::Replace(_, new)) => size::new_identity(new),
            _ => 0,
        }
    }

    /// The user with this id, if its state allows the change and its etag matches.
    pub(crate) fn subject<'v>(
        &self,
        read_set: &'v ReadSet,
        id: LocalityId,
    ) -> Result<&'v Record, DecideError> {
        let record = self.changeable(read_set, id)?;
        self.check_etag(record)?;
        Ok(record)
    }

    /// Rejects the mutation if the user does not have its etag.
    pub(crate) fn check_etag(&self, record: &Record) -> Result<(), Error> {
        match &self.etag {
            Some(etag) if *etag != record.user.etag() => Err(Error::EtagMismatch),
            _ => Ok(()),
        }
    }

    /// The user with this id, if its state allows the change.
    pub(crate) fn changeable<'v>(
        &self,
        read_set: &'v ReadSet,
        id: LocalityId,
    ) -> Result<&'v Record, DecideError> {
        let record = self.present(read_set, id)?;
        match (record.user.state, self.user_change()) {
            (State::Merged { into }, _) => Err(Error::UserMerged { user: id, into }.into()),
            (
                State::Deleted { .. },
                Some(UserChange::Undelete | UserChange::Purge | UserChange::Renormalize(_)),
            ) => Ok(record),
            (State::Deleted { .. }, Some(UserChange::Delete)) => Err(Error::UserNotFound.into()),
            (State::Deleted { .. }, _) => Err(Error::UserDeleted { user: id }.into()),
            (State::Active | State::Disabled, Some(UserChange::Undelete)) => {
                Err(Error::UserNotDeleted.into())
            }
            (State::Active | State::Disabled, _) => Ok(record),
        }
    }

    /// The user of the tenant with this id. A user whose purge is due does not exist.
    pub(crate) fn present<'v>(
        &self,
        read_set: &'v ReadSet,
        id: LocalityId,
    ) -> Result<&'v Record, DecideError> {
        let exists = |record: &&Record| {
            record.user.tenant == self.tenant && !record.user.state.is_purge_due(self.now)
        };
        Ok(read_set.read_user(id)?.filter(exists).ok_or(Error::UserNotFound)?)
    }

    pub(crate) fn key(&self, identifier: &Identifier) -> IdentityKey {
        IdentityKey::new(self.tenant.as_str(), identifier)
    }

    /// The path of the field that names the identifier of `key`, or the one that `key` guards.
    pub(crate) fn field_of(&self, key: &IdentityKey) -> String {
        match self.user_change() {
            Some(UserChange::Create(new)) => new.field_of(key),
            Some(UserChange::Import(imported)) => imported.field_of(key),
            Some(UserChange::Replace(..)) => "new_identifier".to_owned(),
            _ => "identifier".to_owned(),
        }
    }
}
