//! Decisions: pure functions from a read set to a write set.

use locality_uuid::LocalityId;

use super::{
    Mutation, MutationKind, PriorRequest, TenantChange, UserChange, bulk, hold, import, merge,
    merge_links, purge, reimport, renormalize, revert, takeover, tenancy, user_edits,
};
use crate::error::{DeliveryError, Error};
use crate::model::delivery::reads::DeliveryReads;
use crate::model::delivery::record::MAX_DELIVERIES;
use crate::model::delivery::step::{DeliveryStep, Stepped};
use crate::model::new_user::{NewIdentity, NewUser};
use crate::model::record::Record;
use crate::mutation::claim_diff::{ClaimDiff, UserTransition, plan_writes};
use crate::mutation::read_set::{
    DecideError, Decision, MutationReport, ReadRequest, ReadSet, Write, WriteSet,
};
use crate::trial::Trial;

impl Mutation {
    /// The reads that most decisions of this kind need. A store that starts with them rarely has to
    /// read more.
    pub fn needs(&self) -> ReadRequest {
        match &self.kind {
            MutationKind::User(id, change) => self.user_needs(*id, change),
            MutationKind::Tenant(_) => ReadRequest { tenant: true, ..ReadRequest::default() },
            MutationKind::Bulk(id, step) => step.needs(id),
            MutationKind::Delivery(id, step) => delivery_needs(id, step),
            MutationKind::ImportHold(hold) => {
                ReadRequest { claims: vec![hold.key.clone()], ..ReadRequest::default() }
            }
            MutationKind::ReleaseHold(identifier) => {
                ReadRequest { claims: vec![self.key(identifier)], ..ReadRequest::default() }
            }
        }
    }

    fn user_needs(&self, id: LocalityId, change: &UserChange) -> ReadRequest {
        let key = |new: &NewIdentity| self.key(&new.identifier);
        let (mut users, mut claims) = (vec![id], Vec::new());
        match change {
            UserChange::Create(new) => claims.extend(new.identities.iter().map(key)),
            UserChange::Import(imported) => {
                claims.extend(
                    imported.identities.iter().flat_map(|identity| import::keys(self, identity)),
                );
            }
            UserChange::Link(new) | UserChange::Replace(_, new) => claims.push(key(new)),
            UserChange::Merge(other, _) | UserChange::Unmerge(other) => users.push(*other),
            UserChange::Move(from, _) => users.push(*from),
            _ => {}
        }
        let bulk_change = self.bulk.as_ref().map(|part| part.id.clone());
        let undone_bulk_change = match change {
            UserChange::Revert(reversal) if reversal.is_bulk => {
                Some(reversal.operation_id.as_str().into())
            }
            _ => None,
        };
        ReadRequest { users, claims, bulk_change, undone_bulk_change, ..ReadRequest::default() }
    }

    /// Decides the mutation, or requests further reads. Pure: the same read set gives the same
    /// decision.
    ///
    /// # Errors
    /// The reason for rejecting the mutation.
    pub fn decide(&self, read_set: &ReadSet) -> Result<Decision, Error> {
        let foreseen = self.trial.as_ref().and_then(|trial| after(trial, read_set));
        let read_set = foreseen.as_ref().unwrap_or(read_set);
        into_decision(self.write_set(read_set).map(|write_set| {
            #[cfg(feature = "test-entity")]
            let write_set = {
                let mut counted = write_set;
                counted.writes.extend(self.counter.clone().map(Write::Count));
                counted
            };
            if self.dry_run { self.without_writes(read_set, write_set) } else { write_set }
        }))
    }

    /// Decides a retry of a request. Skips the etag and all rules, and writes nothing. A request
    /// that set the policies of a tenant is void, and decided anew, if the tenant was deleted
    /// since; so is one that imported a line, if its user was undone since.
    ///
    /// # Errors
    /// [`Error::UserNotFound`] if the user was removed since.
    pub fn decide_again(&self, prior: PriorRequest, read_set: &ReadSet) -> Result<Decision, Error> {
        into_decision(self.retry_write_set(prior, read_set))
    }

    fn retry_write_set(
        &self,
        prior: PriorRequest,
        read_set: &ReadSet,
    ) -> Result<WriteSet, DecideError> {
        let answer = match &self.kind {
            MutationKind::Tenant(TenantChange::Set(_)) => tenancy::repeat(prior, read_set)?,
            MutationKind::User(id, UserChange::Import(imported)) => {
                return reimport::repeat(self, read_set, prior, *id, imported);
            }
            _ => Some(self.retry_answer(prior, read_set)?),
        };
        match answer {
            Some(answer) => Ok(WriteSet { is_repeated: true, ..answer }),
            None => self.write_set(read_set),
        }
    }

    fn retry_answer(
        &self,
        prior: PriorRequest,
        read_set: &ReadSet,
    ) -> Result<WriteSet, DecideError> {
        let subject = prior.subject;
        let change = match &self.kind {
            MutationKind::User(_, change) => change,
            MutationKind::Tenant(TenantChange::Delete(_)) => {
                return tenancy::repeat_deletion(prior, read_set);
            }
            MutationKind::Tenant(_)
            | MutationKind::ReleaseHold(_)
            | MutationKind::ImportHold(_)
            | MutationKind::Bulk(..)
            | MutationKind::Delivery(..) => return Ok(WriteSet::unchanged(None)),
        };
        let id = subject.ok_or(Error::UserNotFound)?;
        let nothing = WriteSet::unchanged(subject);
        if *change == UserChange::Purge {
            return Ok(WriteSet { report: MutationReport::Purged(vec![id]), ..nothing });
        }

        let record = self.present(read_set, id)?;
        let report = match change {
            UserChange::Unmerge(_) => {
                MutationReport::NotRestored(record.internals.not_restored.clone())
            }
            _ => MutationReport::Nothing,
        };

        Ok(WriteSet { unchanged: Some(record.user.clone()), report, ..nothing })
    }

    fn write_set(&self, read_set: &ReadSet) -> Result<WriteSet, DecideError> {
        match &self.kind {
            MutationKind::User(id, change) => self.user_write_set(read_set, *id, change),
            MutationKind::Tenant(TenantChange::Set(update)) => tenancy::set(self, read_set, update),
            MutationKind::Tenant(TenantChange::Import(imported)) => {
                tenancy::import(self, read_set, imported)
            }
            MutationKind::Tenant(TenantChange::Delete(step)) => {
                tenancy::delete(self, read_set, step)
            }
            MutationKind::Tenant(TenantChange::FinishIndexChanges(since)) => {
                tenancy::finish(read_set, |policies| policies.finish_index_changes(*since))
            }
            MutationKind::Tenant(TenantChange::FinishHistoryChange(since)) => {
                tenancy::finish(read_set, |policies| policies.finish_history_change(*since))
            }
            MutationKind::ReleaseHold(identifier) => hold::release(self, read_set, identifier),
            MutationKind::ImportHold(hold) => hold::import(self, read_set, hold),
            MutationKind::Bulk(id, step) => bulk::step(self, read_set, id, step),
            MutationKind::Delivery(id, step) => self.delivery_write_set(read_set, id, step),
        }
    }

    /// Takes a step of the delivery with this id. Reports the delivery, unless it is gone or the
    /// server has no right to take the step.
    fn delivery_write_set(
        &self,
        read_set: &ReadSet,
        id: &str,
        step: &DeliveryStep,
    ) -> Result<WriteSet, DecideError> {
        let DeliveryReads { delivery, count } = &read_set.deliveries;
        let needs = || DecideError::from(delivery_needs(id, step));
        let stored = delivery.as_ref().ok_or_else(needs)?.as_ref();
        if matches!(step, DeliveryStep::Create(_)) && stored.is_none() {
            if read_set.read_tenant()?.is_none_or(|tenant| tenant.deletion.is_some()) {
                return Err(Error::TenantNotFound.into());
            }
            if count.ok_or_else(needs)? >= MAX_DELIVERIES {
                return Err(
                    Error::Delivery(DeliveryError::TooMany { limit: MAX_DELIVERIES }).into()
                );
            }
        }
        let nothing = WriteSet::unchanged(None);
        Ok(match step.apply(stored, self.now.time)? {
            Stepped::Nothing => nothing,
            Stepped::Unchanged(present) => {
                WriteSet { report: MutationReport::Delivery(present), ..nothing }
            }
            Stepped::Put(after) => WriteSet {
                writes: vec![Write::PutDelivery(after.clone())],
                report: MutationReport::Delivery(after),
                ..nothing
            },
            Stepped::Removed => {
                WriteSet { writes: vec![Write::RemoveDelivery(id.to_owned())], ..nothing }
            }
        })
    }

    fn user_write_set(
        &self,
        read_set: &ReadSet,
        id: LocalityId,
        change: &UserChange,
    ) -> Result<WriteSet, DecideError> {
        if let Some(part) = &self.bulk {
            return match change {
                UserChange::Revert(reversal) => {
                    revert::revert_part(self, read_set, id, part, reversal)
                }
                _ => bulk::change_matching(self, read_set, id, part, change),
            };
        }
        match change {
            UserChange::Create(new) => self.create(read_set, id, new),
            UserChange::Import(imported) => reimport::line(self, read_set, id, imported),
            UserChange::Merge(other, policy) => merge::merge(self, read_set, id, *other, *policy),
            UserChange::Unmerge(other) => merge::unmerge(self, read_set, id, *other),
            UserChange::Move(from, identifier) => {
                takeover::transfer(self, read_set, id, *from, identifier)
            }
            UserChange::Purge => purge::purge_user(self, read_set, id),
            UserChange::Expire => purge::expire(self, read_set, id),
            UserChange::Renormalize(identifier) => {
                renormalize::renormalize(self, read_set, id, identifier)
            }
            UserChange::Revert(reversal) => revert::revert(self, read_set, id, reversal),
            UserChange::Reindex => self.reindex(read_set, id),
            UserChange::RemoveMergeFaults => merge_links::remove_faults(self, read_set, id),
            _ => self.edit(read_set, id, change),
        }
    }

    /// Stores the user unchanged, in any state.
    fn reindex(&self, read_set: &ReadSet, id: LocalityId) -> Result<WriteSet, DecideError> {
        let record = read_set.read_user(id)?.filter(|record| record.user.tenant == self.tenant);
        let writes = record.map(|record| Write::PutUser(Box::new(record.clone())));
        Ok(WriteSet { writes: writes.into_iter().collect(), ..WriteSet::unchanged(None) })
    }

    /// The write set of a dry run: the report, and the user as it is. Undoing a merge shows the
    /// restored user.
    fn without_writes(&self, read_set: &ReadSet, write_set: WriteSet) -> WriteSet {
        let subject = write_set.subject;
        let user = subject.and_then(|id| match self.user_change() {
            Some(UserChange::Unmerge(_)) => write_set.user(id),
            _ => read_set.user(id).map(|record| &record.user),
        });
        let unchanged = user.cloned();
        let foreseen = self.trial.as_ref().map(|_| write_set.writes).unwrap_or_default();
        WriteSet { unchanged, report: write_set.report, foreseen, ..WriteSet::unchanged(subject) }
    }

    fn create(
        &self,
        read_set: &ReadSet,
        id: LocalityId,
        new: &NewUser,
    ) -> Result<WriteSet, DecideError> {
        if read_set.read_new_user(id)?.is_some() {
            return Err(Error::Internal("an id was given twice".into()).into());
        }

        self.policies.check_reserved(new)?;
        self.policies.check_types(&new.attributes)?;
        let mut record = Record::new(new.user(id, self.tenant.clone(), self.now.time));
        for identity in &new.identities {
            record.guard(&identity.identifier, &self.policies);
        }
        let created = UserTransition { before: None, after: Some(record) };
        takeover::plan_writes(self, read_set, created, &new.identities)
    }

    /// Rejects a reserved handle for a user who does not have it.
    fn check_reserved(&self, before: &Record, change: &UserChange) -> Result<(), Error> {
        let (new, field) = match change {
            UserChange::Link(new) => (new, "identifier"),
            UserChange::Replace(_, new) => (new, "new_identifier"),
            _ => return Ok(()),
        };
        let is_new = before.user.identity(&new.identifier).is_none();
        if is_new && self.policies.reserves(&new.identifier) {
            return Err(Error::IdentityReserved { field: field.to_owned() });
        }
        Ok(())
    }

    pub(super) fn edit(
        &self,
        read_set: &ReadSet,
        id: LocalityId,
        change: &UserChange,
    ) -> Result<WriteSet, DecideError> {
        let before = self.subject(read_set, id)?;
        let mut after = before.clone();
        self.check_reserved(before, change)?;
        user_edits::apply(self, change, &mut after)?;

        let altered = UserTransition::new(before, after);

        match change {
            UserChange::Link(new) if before.user.identity(&new.identifier).is_none() => {
                takeover::plan_writes(self, read_set, altered, std::slice::from_ref(new))
            }
            _ => plan_writes(self, read_set, vec![altered], ClaimDiff::new()),
        }
    }
}

/// A read set as it would be after the earlier mutations of a trial; none if they would not have
/// changed it.
fn after(trial: &Trial, read_set: &ReadSet) -> Option<ReadSet> {
    let users = read_set.users.keys().filter_map(|id| Some((*id, trial.user(*id)?)));
    let users: Vec<_> = users.collect();
    let claims = read_set.claims.keys().filter_map(|key| Some((key.clone(), trial.claim(key)?)));
    let claims: Vec<_> = claims.collect();
    if users.is_empty() && claims.is_empty() {
        return None;
    }
    let mut after = read_set.clone();
    after.users.extend(users);
    after.claims.extend(claims);
    Some(after)
}

fn into_decision(write_set: Result<WriteSet, DecideError>) -> Result<Decision, Error> {
    match write_set {
        Ok(write_set) => Ok(Decision::Ready(Box::new(write_set))),
        Err(DecideError::NeedsReads(needs)) => Ok(Decision::NeedsReads(*needs)),
        Err(DecideError::Rejected(error)) => Err(error),
    }
}

/// The reads that a step of a delivery needs.
fn delivery_needs(id: &str, step: &DeliveryStep) -> ReadRequest {
    let creates = matches!(step, DeliveryStep::Create(_));
    ReadRequest {
        delivery: Some(id.into()),
        count_deliveries: creates,
        tenant: creates,
        ..ReadRequest::default()
    }
}
