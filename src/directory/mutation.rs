//! Mutations as pure functions: from what a store has read to what it is to write.

mod decide;
pub mod hold;
pub mod merge;
pub mod purge;
pub mod renormalize;
pub mod request_hash;
pub mod size;
pub mod takeover;
pub mod tenancy;
pub mod transfer;
pub mod unmerge;
pub mod update;
pub mod user_edits;

use std::sync::Arc;
use std::time::Duration;

use locality_uuid::LocalityId;

use super::clock::Now;
use super::error::Error;
use super::read_set::{DecideError, ReadSet};
use crate::directory::model::limits::Limits;
use crate::directory::model::merge_report::ConflictPolicy;
use crate::directory::model::new_user::{NewIdentity, NewUser};
use crate::directory::model::policies::{Policies, PolicyUpdate};
use crate::directory::model::record::Record;
use crate::directory::model::tenant::Tenant;
use crate::directory::model::tenant_record::DeletionStep;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::model::user::{State, Verification};
use crate::identifier::{Identifier, IdentityKey, Rules};
use update::Update;

/// One change, with what must hold for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutation {
    /// The tenant that it happens in.
    pub tenant: Tenant,
    /// The user whom it is about; for a change that is about none, an id that nobody has.
    pub user_id: LocalityId,
    /// Where given: the etag that the user, or the tenant that is to be changed, must have.
    pub etag: Option<String>,
    /// Where given: the name of this request, under which its outcome is remembered.
    pub request: Option<IdempotencyKey>,
    /// Now.
    pub time: Timestamp,
    /// Whether that is in doubt, so that nothing counts as over: see [`Now`].
    pub in_doubt: bool,
    /// What a user may have at most.
    pub limits: Limits,
    /// The tenant's rules.
    pub policies: Arc<Policies>,
    /// The rules of normalisation to which a renormalisation moves.
    pub rules: Rules,
    /// Whether nothing is to be written: the answer tells what would happen. Goes without a
    /// request.
    pub dry_run: bool,
    /// What to do.
    pub change: MutationKind,
}

/// The name of a request. A store remembers it with the user for [`IdempotencyKey::LIFETIME`] once
/// the mutation has happened (AIP-155).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Tenant, method, request id and caller as one string: different requests have different keys.
    pub key: String,
    /// A hash of what was asked for, to tell a retry from another request under the same id.
    pub request_hash: u64,
}

impl IdempotencyKey {
    /// How long the outcome of a request is remembered: 24 hours.
    pub const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
}

/// What a mutation does.
#[derive(Clone, Debug, PartialEq)]
pub enum MutationKind {
    /// Makes the user.
    Create(NewUser),
    /// Sets fields.
    Update(Update),
    /// Gives the user an identity. One that the user has stays as it is, but for being verified now
    /// where it was not, and for being the primary one now where that is asked for.
    Link(NewIdentity),
    /// Takes an identity from the user.
    Unlink(Identifier),
    /// Puts the new identity in the place of the old one.
    Replace(Identifier, NewIdentity),
    /// Sets or clears the verification of an identity.
    Verify(Identifier, Option<Verification>),
    /// Shuts the user out for now.
    Disable,
    /// Lets the user in again.
    Enable,
    /// Deletes the user, who can be restored for a while.
    Delete,
    /// Restores the user.
    Undelete,
    /// Removes the user for good, and those that were merged into it.
    Purge,
    /// Makes the user with this id part of the user.
    Merge(LocalityId, ConflictPolicy),
    /// Makes the user with this id, which was merged into the user, a user of its own again.
    Unmerge(LocalityId),
    /// Takes an identity from the user with this id and gives it to the user.
    Move(LocalityId, Identifier),
    /// Does what is [due](Record::due), if anything is.
    Expire,
    /// Moves an identity of the user, which was made by older rules, to the present ones.
    Renormalize(Identifier),
    /// Ends the hold on an identifier.
    Release(Identifier),
    /// Sets policies of the tenant, and makes it where there is none.
    SetTenant(PolicyUpdate),
    /// Takes a step of deleting the tenant.
    DeleteTenant(DeletionStep),
}

impl Mutation {
    /// A mutation that asks for nothing but the change, under the default limits and policies.
    pub fn new(tenant: Tenant, user_id: LocalityId, time: Timestamp, change: MutationKind) -> Self {
        let (limits, policies, rules) = (Limits::default(), Arc::default(), Rules::PRESENT);
        let (in_doubt, dry_run) = (false, false);
        Self {
            tenant,
            user_id,
            etag: None,
            request: None,
            time,
            in_doubt,
            limits,
            policies,
            rules,
            dry_run,
            change,
        }
    }

    /// The present time of the mutation.
    pub const fn now(&self) -> Now {
        Now { in_doubt: self.in_doubt, ..Now::certain(self.time) }
    }

    /// Whether a deadline is over for certain.
    pub fn is_past(&self, deadline: Timestamp) -> bool {
        self.now().is_past(deadline)
    }

    /// Whether a request that was carried out at `time` is forgotten, though a store may still have
    /// it.
    pub fn forgets(&self, time: Timestamp) -> bool {
        self.is_past(time.plus(IdempotencyKey::LIFETIME))
    }

    /// The size in bytes of what a caller gave for the change.
    pub fn bytes(&self) -> usize {
        match &self.change {
            MutationKind::Create(draft) => {
                let identities: usize = draft.identities.iter().map(size::draft_identity).sum();
                draft.display_name.len() + identities + size::attributes(&draft.attributes)
            }
            MutationKind::Update(update) => update.bytes(),
            MutationKind::Link(draft) | MutationKind::Replace(_, draft) => {
                size::draft_identity(draft)
            }
            _ => 0,
        }
    }

    /// The user whom the mutation is about, if it can be changed so.
    pub(crate) fn subject<'v>(&self, read_set: &'v ReadSet) -> Result<&'v Record, DecideError> {
        let record = self.changeable(read_set, self.user_id)?;
        match &self.etag {
            Some(etag) if *etag != record.user.etag() => Err(Error::EtagMismatch.into()),
            _ => Ok(record),
        }
    }

    /// The user with this id, if it can be changed so.
    pub(crate) fn changeable<'v>(
        &self,
        read_set: &'v ReadSet,
        id: LocalityId,
    ) -> Result<&'v Record, DecideError> {
        let record = self.present(read_set, id)?;
        match (record.user.state, &self.change) {
            (State::Merged { into }, _) => Err(Error::UserMerged { user: id, into }.into()),
            (
                State::Deleted { .. },
                MutationKind::Undelete | MutationKind::Purge | MutationKind::Renormalize(_),
            ) => Ok(record),
            (State::Deleted { .. }, MutationKind::Delete) => Err(Error::UserNotFound.into()),
            (State::Deleted { .. }, _) => Err(Error::UserDeleted { user: id }.into()),
            (State::Active | State::Disabled, MutationKind::Undelete) => {
                Err(Error::UserNotDeleted.into())
            }
            (State::Active | State::Disabled, _) => Ok(record),
        }
    }

    /// The user of the tenant with this id. One that is to be purged by now counts as gone.
    pub(crate) fn present<'v>(
        &self,
        read_set: &'v ReadSet,
        id: LocalityId,
    ) -> Result<&'v Record, DecideError> {
        let is_gone =
            |state| matches!(state, State::Deleted { purge_time, .. } if self.is_past(purge_time));
        let record = read_set.read_user(id)?.filter(|record| record.user.tenant == self.tenant);
        Ok(record.filter(|record| !is_gone(record.user.state)).ok_or(Error::UserNotFound)?)
    }

    pub(crate) fn key(&self, identifier: &Identifier) -> IdentityKey {
        IdentityKey::new(self.tenant.as_str(), identifier)
    }

    /// The path of the field that names the identifier of `key`, or the one that `key` guards.
    pub(crate) fn field_of(&self, key: &IdentityKey) -> String {
        match &self.change {
            MutationKind::Create(draft) => draft.field_of(key),
            MutationKind::Replace(..) => "new_identifier".to_owned(),
            _ => "identifier".to_owned(),
        }
    }
}
