//! Decisions: pure functions from what a store has read to what it writes.

use locality_uuid::LocalityId;

use super::{
    Mutation, MutationKind, hold, merge, purge, renormalize, takeover, tenancy, transfer, unmerge,
    user_edits,
};
use crate::directory::claim_diff::{ClaimDiff, UserTransition, plan_writes};
use crate::directory::error::Error;
use crate::directory::model::new_user::{NewIdentity, NewUser};
use crate::directory::model::record::Record;
use crate::directory::read_set::{
    DecideError, Decision, MutationReport, ReadRequest, ReadSet, WriteSet,
};

impl Mutation {
    /// What deciding needs in nearly every case. A store that reads this first is seldom asked for
    /// more.
    pub fn needs(&self) -> ReadRequest {
        let key = |draft: &NewIdentity| self.key(&draft.identifier);
        let (mut users, mut claims) = (vec![self.user_id], Vec::new());
        match &self.change {
            MutationKind::Create(draft) => claims.extend(draft.identities.iter().map(key)),
            MutationKind::Link(draft) | MutationKind::Replace(_, draft) => claims.push(key(draft)),
            MutationKind::Merge(secondary, _) | MutationKind::Unmerge(secondary) => {
                users.push(*secondary)
            }
            MutationKind::Move(from, _) => users.push(*from),
            MutationKind::Release(identifier) => {
                return ReadRequest {
                    claims: vec![self.key(identifier)],
                    ..ReadRequest::default()
                };
            }
            MutationKind::SetTenant(_) | MutationKind::DeleteTenant(_) => {
                return ReadRequest { tenant: true, ..ReadRequest::default() };
            }
            _ => {}
        }
        ReadRequest { users, claims, ..ReadRequest::default() }
    }

    /// What is to be done, given what was read; or what must be read first. Pure: the same answer
    /// for the same read set.
    ///
    /// # Errors
    /// Why nothing is to be done.
    pub fn decide(&self, read_set: &ReadSet) -> Result<Decision, Error> {
        decided(self.write_set(read_set).map(|write_set| {
            if self.dry_run { self.untouched(read_set, write_set) } else { write_set }
        }))
    }

    /// What to answer where this request was carried out before, with the answer about `subject`.
    /// Nothing is checked again, neither the etag nor a rule, and nothing is written.
    ///
    /// # Errors
    /// [`Error::UserNotFound`] or [`Error::TenantNotFound`] where that user or the tenant is gone
    /// since.
    pub fn decide_again(&self, subject: LocalityId, read_set: &ReadSet) -> Result<Decision, Error> {
        decided(self.repeated(subject, read_set))
    }

    fn repeated(&self, subject: LocalityId, read_set: &ReadSet) -> Result<WriteSet, DecideError> {
        let nothing = WriteSet::nothing(subject);
        let report = match &self.change {
            MutationKind::Release(_) => return Ok(nothing),
            MutationKind::Purge => {
                return Ok(WriteSet { report: MutationReport::Purged(vec![subject]), ..nothing });
            }
            MutationKind::SetTenant(_) => return tenancy::repeat(subject, read_set),
            MutationKind::DeleteTenant(_) => return tenancy::repeat_deletion(subject, read_set),
            MutationKind::Unmerge(_) => MutationReport::NotRestored(
                self.present(read_set, subject)?.private.not_restored.clone(),
            ),
            _ => MutationReport::Nothing,
        };
        let unchanged = Some(self.present(read_set, subject)?.user.clone());
        Ok(WriteSet { unchanged, report, ..nothing })
    }

    fn write_set(&self, read_set: &ReadSet) -> Result<WriteSet, DecideError> {
        match &self.change {
            MutationKind::Create(draft) => self.create(read_set, draft),
            MutationKind::Merge(secondary, policy) => {
                merge::merge(self, read_set, *secondary, *policy)
            }
            MutationKind::Unmerge(secondary) => unmerge::unmerge(self, read_set, *secondary),
            MutationKind::Move(from, identifier) => {
                transfer::transfer(self, read_set, *from, identifier)
            }
            MutationKind::Purge => purge::purge(self, read_set, self.subject(read_set)?),
            MutationKind::Expire => purge::expire(self, read_set),
            MutationKind::Renormalize(identifier) => {
                renormalize::renormalize(self, read_set, identifier)
            }
            MutationKind::Release(identifier) => hold::release(self, read_set, identifier),
            MutationKind::SetTenant(update) => tenancy::set(self, read_set, update),
            MutationKind::DeleteTenant(step) => tenancy::delete(self, read_set, step),
            _ => self.alter(read_set),
        }
    }

    /// What a dry run leaves of the write_set: what there is to tell, of the user as it is. Of one
    /// who was merged into another there is more to tell as it would be.
    fn untouched(&self, read_set: &ReadSet, write_set: WriteSet) -> WriteSet {
        let restored = || write_set.users.iter().find(|record| record.id() == write_set.subject);
        let told = match self.change {
            MutationKind::Unmerge(_) => restored(),
            _ => read_set.user(write_set.subject),
        };
        let unchanged = told.map(|record| record.user.clone());
        WriteSet { unchanged, report: write_set.report, ..WriteSet::nothing(write_set.subject) }
    }

    fn create(&self, read_set: &ReadSet, draft: &NewUser) -> Result<WriteSet, DecideError> {
        if read_set.read_new_user(self.user_id)?.is_some() {
            return Err(Error::Internal("an id was given twice".into()).into());
        }
        self.policies.check_reserved(draft)?;
        let mut record = Record::new(draft.user(self.user_id, self.tenant.clone(), self.time));
        draft
            .identities
            .iter()
            .for_each(|identity| record.guard(&identity.identifier, &self.policies));
        let created = UserTransition { before: None, after: Some(record) };
        takeover::plan_writes(self, read_set, created, &draft.identities)
    }

    /// Refuses a reserved handle to a user who does not have it.
    fn check_reserved(&self, before: &Record) -> Result<(), Error> {
        let (draft, field) = match &self.change {
            MutationKind::Link(draft) => (draft, "identifier"),
            MutationKind::Replace(_, draft) => (draft, "new_identifier"),
            _ => return Ok(()),
        };
        let is_new = before.user.identity(&draft.identifier).is_none();
        if is_new && self.policies.reserves(&draft.identifier) {
            return Err(Error::IdentityReserved { field: field.to_owned() });
        }
        Ok(())
    }

    fn alter(&self, read_set: &ReadSet) -> Result<WriteSet, DecideError> {
        let before = self.subject(read_set)?;
        let mut after = before.clone();
        self.check_reserved(before)?;
        user_edits::apply(self, &mut after)?;
        let altered = UserTransition::new(before, after);
        match &self.change {
            MutationKind::Link(draft) if before.user.identity(&draft.identifier).is_none() => {
                takeover::plan_writes(self, read_set, altered, std::slice::from_ref(draft))
            }
            _ => plan_writes(self, read_set, vec![altered], ClaimDiff::new()),
        }
    }
}

fn decided(write_set: Result<WriteSet, DecideError>) -> Result<Decision, Error> {
    match write_set {
        Ok(write_set) => Ok(Decision::Ready(Box::new(write_set))),
        Err(DecideError::NeedsReads(needs)) => Ok(Decision::NeedsReads(needs)),
        Err(DecideError::Rejected(error)) => Err(error),
    }
}
