//! Mutations as pure functions: from what a store has read to what it is to write.

use std::sync::Arc;
use std::time::Duration;

use super::settle::{Changes, Transition, settle};
use super::view::Stop;
use super::{
    ConflictPolicy, Decision, DeletionStep, Draft, DraftIdentity, Effects, Error, Limits, Needs, Now, Policies,
    PolicyUpdate, Record, Report, State, Tenant, Timestamp, Update, Verification, View, change, displace, hold, merge,
    purge, renormalize, tenancy, transfer, unmerge,
};
use crate::identifier::{Identifier, IdentityKey, Rules};
use crate::locality::LocalityId;

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
    pub request: Option<Request>,
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
    /// Whether nothing is to be written: the answer tells what would happen. Goes without a request.
    pub dry_run: bool,
    /// What to do.
    pub change: Change,
}

/// The name of a request. A store remembers it with the user for [`Request::LIFETIME`] once the mutation has
/// happened (AIP-155).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Tenant, method, request id and caller as one string: different requests have different keys.
    pub key: String,
    /// A hash of what was asked for, to tell a retry from another request under the same id.
    pub fingerprint: u64,
}

impl Request {
    /// How long the outcome of a request is remembered: 24 hours.
    pub const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
}

/// What a mutation does.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Makes the user.
    Create(Draft),
    /// Sets fields.
    Update(Update),
    /// Gives the user an identity. One that the user has stays as it is, but for being verified now where it was not, and
    /// for being the primary one now where that is asked for.
    Link(DraftIdentity),
    /// Takes an identity from the user.
    Unlink(Identifier),
    /// Puts the new identity in the place of the old one.
    Replace(Identifier, DraftIdentity),
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
    Tend,
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
    pub fn new(tenant: Tenant, user_id: LocalityId, time: Timestamp, change: Change) -> Self {
        let (limits, policies, rules) = (Limits::default(), Arc::default(), Rules::PRESENT);
        let (in_doubt, dry_run) = (false, false);
        Self { tenant, user_id, etag: None, request: None, time, in_doubt, limits, policies, rules, dry_run, change }
    }

    /// The present time of the mutation.
    pub const fn now(&self) -> Now {
        Now { in_doubt: self.in_doubt, ..Now::certain(self.time) }
    }

    /// Whether a deadline is over for certain.
    pub fn is_past(&self, deadline: Timestamp) -> bool {
        self.now().is_past(deadline)
    }

    /// Whether a request that was carried out at `time` is forgotten, though a store may still have it.
    pub fn forgets(&self, time: Timestamp) -> bool {
        self.is_past(time.plus(Request::LIFETIME))
    }

    /// What deciding needs in nearly every case. A store that reads this first is seldom asked for more.
    pub fn needs(&self) -> Needs {
        let key = |draft: &DraftIdentity| self.key(&draft.identifier);
        let (mut users, mut claims) = (vec![self.user_id], Vec::new());
        match &self.change {
            Change::Create(draft) => claims.extend(draft.identities.iter().map(key)),
            Change::Link(draft) | Change::Replace(_, draft) => claims.push(key(draft)),
            Change::Merge(secondary, _) | Change::Unmerge(secondary) => users.push(*secondary),
            Change::Move(from, _) => users.push(*from),
            Change::Release(identifier) => return Needs { claims: vec![self.key(identifier)], ..Needs::default() },
            Change::SetTenant(_) | Change::DeleteTenant(_) => {
                return Needs { tenant: true, ..Needs::default() };
            }
            _ => {}
        }
        Needs { users, claims, ..Needs::default() }
    }

    /// What is to be done, given what was read; or what must be read first. Pure: the same answer for the same view.
    ///
    /// # Errors
    /// Why nothing is to be done.
    pub fn decide(&self, view: &View) -> Result<Decision, Error> {
        decided(self.effects(view).map(|effects| if self.dry_run { self.untouched(view, effects) } else { effects }))
    }

    /// What to answer where this request was carried out before, with the answer about `subject`. Nothing is checked
    /// again, neither the etag nor a rule, and nothing is written.
    ///
    /// # Errors
    /// [`Error::UserNotFound`] or [`Error::TenantNotFound`] where that user or the tenant is gone since.
    pub fn decide_again(&self, subject: LocalityId, view: &View) -> Result<Decision, Error> {
        decided(self.repeated(subject, view))
    }

    fn repeated(&self, subject: LocalityId, view: &View) -> Result<Effects, Stop> {
        let nothing = Effects::nothing(subject);
        let report = match &self.change {
            Change::Release(_) => return Ok(nothing),
            Change::Purge => return Ok(Effects { report: Report::Purged(vec![subject]), ..nothing }),
            Change::SetTenant(_) => return tenancy::repeat(subject, view),
            Change::DeleteTenant(_) => return tenancy::repeat_deletion(subject, view),
            Change::Unmerge(_) => Report::NotRestored(self.present(view, subject)?.private.not_restored.clone()),
            _ => Report::Nothing,
        };
        let unchanged = Some(self.present(view, subject)?.user.clone());
        Ok(Effects { unchanged, report, ..nothing })
    }

    fn effects(&self, view: &View) -> Result<Effects, Stop> {
        match &self.change {
            Change::Create(draft) => self.create(view, draft),
            Change::Merge(secondary, policy) => merge::merge(self, view, *secondary, *policy),
            Change::Unmerge(secondary) => unmerge::unmerge(self, view, *secondary),
            Change::Move(from, identifier) => transfer::transfer(self, view, *from, identifier),
            Change::Purge => purge::purge(self, view, self.subject(view)?),
            Change::Tend => purge::tend(self, view),
            Change::Renormalize(identifier) => renormalize::renormalize(self, view, identifier),
            Change::Release(identifier) => hold::release(self, view, identifier),
            Change::SetTenant(update) => tenancy::set(self, view, update),
            Change::DeleteTenant(step) => tenancy::delete(self, view, step),
            _ => self.alter(view),
        }
    }

    /// What a dry run leaves of the effects: what there is to tell, of the user as it is. Of one who was merged into another
    /// there is more to tell as it would be.
    fn untouched(&self, view: &View, effects: Effects) -> Effects {
        let restored = || effects.users.iter().find(|record| record.id() == effects.subject);
        let told = match self.change {
            Change::Unmerge(_) => restored(),
            _ => view.user(effects.subject),
        };
        let unchanged = told.map(|record| record.user.clone());
        Effects { unchanged, report: effects.report, ..Effects::nothing(effects.subject) }
    }

    fn create(&self, view: &View, draft: &Draft) -> Result<Effects, Stop> {
        if view.read_new_user(self.user_id)?.is_some() {
            return Err(Error::Internal("an id was given twice".into()).into());
        }
        self.policies.check_reserved(draft)?;
        let mut record = Record::new(draft.user(self.user_id, self.tenant.clone(), self.time));
        draft.identities.iter().for_each(|identity| record.guard(&identity.identifier, &self.policies));
        let created = Transition { before: None, after: Some(record) };
        displace::settle(self, view, created, &draft.identities)
    }

    /// Refuses a reserved handle to a user who does not have it.
    fn check_reserved(&self, before: &Record) -> Result<(), Error> {
        let (draft, field) = match &self.change {
            Change::Link(draft) => (draft, "identifier"),
            Change::Replace(_, draft) => (draft, "new_identifier"),
            _ => return Ok(()),
        };
        let is_new = before.user.identity(&draft.identifier).is_none();
        if is_new && self.policies.reserves(&draft.identifier) {
            return Err(Error::IdentityReserved { field: field.to_owned() });
        }
        Ok(())
    }

    fn alter(&self, view: &View) -> Result<Effects, Stop> {
        let before = self.subject(view)?;
        let mut after = before.clone();
        self.check_reserved(before)?;
        change::apply(self, &mut after)?;
        let altered = Transition::new(before, after);
        match &self.change {
            Change::Link(draft) if before.user.identity(&draft.identifier).is_none() => {
                displace::settle(self, view, altered, std::slice::from_ref(draft))
            }
            _ => settle(self, view, vec![altered], Changes::new()),
        }
    }

    /// The user whom the mutation is about, if it can be changed so.
    pub(super) fn subject<'v>(&self, view: &'v View) -> Result<&'v Record, Stop> {
        let record = self.changeable(view, self.user_id)?;
        match &self.etag {
            Some(etag) if *etag != record.user.etag() => Err(Error::EtagMismatch.into()),
            _ => Ok(record),
        }
    }

    /// The user with this id, if it can be changed so.
    pub(super) fn changeable<'v>(&self, view: &'v View, id: LocalityId) -> Result<&'v Record, Stop> {
        let record = self.present(view, id)?;
        match (record.user.state, &self.change) {
            (State::Merged { into }, _) => Err(Error::UserMerged { user: id, into }.into()),
            (State::Deleted { .. }, Change::Undelete | Change::Purge | Change::Renormalize(_)) => Ok(record),
            (State::Deleted { .. }, Change::Delete) => Err(Error::UserNotFound.into()),
            (State::Deleted { .. }, _) => Err(Error::UserDeleted { user: id }.into()),
            (State::Active | State::Disabled, Change::Undelete) => Err(Error::UserNotDeleted.into()),
            (State::Active | State::Disabled, _) => Ok(record),
        }
    }

    /// The user of the tenant with this id. One that is to be purged by now counts as gone.
    pub(super) fn present<'v>(&self, view: &'v View, id: LocalityId) -> Result<&'v Record, Stop> {
        let is_gone = |state| matches!(state, State::Deleted { purge_time, .. } if self.is_past(purge_time));
        let record = view.read_user(id)?.filter(|record| record.user.tenant == self.tenant);
        Ok(record.filter(|record| !is_gone(record.user.state)).ok_or(Error::UserNotFound)?)
    }

    pub(super) fn key(&self, identifier: &Identifier) -> IdentityKey {
        IdentityKey::new(self.tenant.as_str(), identifier)
    }

    /// The path of the field that names the identifier of `key`, or the one that `key` guards.
    pub(super) fn field_of(&self, key: &IdentityKey) -> String {
        match &self.change {
            Change::Create(draft) => draft.field_of(key),
            Change::Replace(..) => "new_identifier".to_owned(),
            _ => "identifier".to_owned(),
        }
    }
}

fn decided(effects: Result<Effects, Stop>) -> Result<Decision, Error> {
    match effects {
        Ok(effects) => Ok(Decision::Done(Box::new(effects))),
        Err(Stop::Read(needs)) => Ok(Decision::Read(needs)),
        Err(Stop::Refuse(error)) => Err(error),
    }
}
