//! The recovery of the outcome of a commit that was not answered.

use locality_uuid::LocalityId;
use mongodb::Collection;
use mongodb::bson::{Bson, RawDocumentBuf, doc};

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::database::ordered::OrderedFinds;
use crate::inbox::inboxes::InboxWork;
use crate::mutation::visibility::Written;
use crate::schema::bson::id_value;
use crate::schema::fields::ID;
use crate::schema::request::{StoredRequest, request_id};
use crate::schema::tenant::read_tenant;
use crate::schema::user::StoredUser;
use polynym_directory::{
    Decision, Error, IdempotencyKey, Mutation, MutationReport, Outcome, PriorRequest, ReadRequest,
    ReadSet,
};
use polynym_layers::lookup_cache::PendingWrite;

/// A mutation whose commit was not confirmed: its outcome is unknown.
pub struct Unconfirmed {
    /// The user that the answer is about.
    pub subject: Option<LocalityId>,
    /// The revision of that user after the mutation.
    pub revision: Option<i64>,
    /// The outcome if it has happened.
    pub outcome: Outcome,
    /// The fault of the commit, or of the reads that wait for its visibility.
    pub fault: Fault,
    /// The writes of the mutation.
    pub written: Written,
    /// The inboxes to clean up if it has happened.
    pub inboxes: InboxWork,
    /// Removes the written users and keys from the cache when it is dropped: after the recovery.
    pub pending: Option<PendingWrite>,
}

/// The outcome of a step of a purge whose commit was not confirmed: the progress before it, so that
/// the step is taken again. A step that is taken twice changes nothing the second time.
fn repeated_step(mutation: &Mutation, outcome: Outcome) -> Outcome {
    let before = mutation.purge.clone().unwrap_or_default();
    Outcome { report: MutationReport::PurgeBegun(before), ..outcome }
}

impl Collections {
    /// The outcome of a mutation whose commit was not confirmed, with the user as it is now, if the
    /// store shows that the mutation has happened; and the inboxes to clean up.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] if it does not: the commit may still be in flight.
    pub async fn recover(
        &self,
        mutation: &Mutation,
        unconfirmed: Unconfirmed,
    ) -> Result<(Outcome, InboxWork), Error> {
        if unconfirmed.outcome.report.is_partial() {
            return Ok((repeated_step(mutation, unconfirmed.outcome), InboxWork::default()));
        }
        let found = self.find_outcome(mutation, &unconfirmed).await;
        let Unconfirmed { fault, pending, inboxes, .. } = unconfirmed;
        // The commit may have been in flight until now.
        drop(pending);
        let found = found.ok().flatten().map(|outcome| (outcome, inboxes));
        found.ok_or_else(|| Error::OutcomeUnknown(fault.into()))
    }

    /// The outcome if the mutation has happened, once all shards show it.
    async fn find_outcome(
        &self,
        mutation: &Mutation,
        unconfirmed: &Unconfirmed,
    ) -> Result<Option<Outcome>, Fault> {
        let mut finds = self.in_order().await?;
        let found = match &mutation.request {
            Some(request) => self.find_recorded(&mut finds, mutation, request, unconfirmed).await?,
            None => self.find_written(&mut finds, mutation, unconfirmed).await?,
        };
        if found.is_some() {
            self.read_written(&mut finds, &unconfirmed.written).await?;
        }
        Ok(found)
    }

    /// The outcome if the store has what the mutation writes.
    async fn find_written(
        &self,
        finds: &mut OrderedFinds,
        mutation: &Mutation,
        unconfirmed: &Unconfirmed,
    ) -> Result<Option<Outcome>, Fault> {
        let is_written = match &unconfirmed.outcome.report {
            MutationReport::Tenant(tenant) => {
                let name = mutation.tenant.as_str().into();
                let found = self.find_by_id(finds, &self.tenants, name).await?;
                found.as_deref().map(read_tenant).transpose()?.as_ref() == Some(tenant)
            }
            report => match unconfirmed.subject {
                None => false,
                Some(id) if matches!(report, MutationReport::Purged(_)) => {
                    self.revision(finds, id).await?.is_none()
                }
                Some(id) => self.revision(finds, id).await? == unconfirmed.revision,
            },
        };

        Ok(is_written.then(|| unconfirmed.outcome.clone()))
    }

    /// The outcome if the request is recorded. The user may have changed since: the answer has its
    /// current state.
    async fn find_recorded(
        &self,
        finds: &mut OrderedFinds,
        mutation: &Mutation,
        request: &IdempotencyKey,
        unconfirmed: &Unconfirmed,
    ) -> Result<Option<Outcome>, Fault> {
        if !self.is_recorded(finds, mutation, request, unconfirmed.subject).await? {
            return Ok(None);
        }
        let outcome = unconfirmed.outcome.clone();
        let Some(repeated) = self.repeat(finds, mutation, unconfirmed.subject).await? else {
            return Ok(Some(outcome));
        };

        let report = match &outcome.report {
            MutationReport::Tenant(_) => repeated.report,
            report => report.clone(),
        };
        Ok(Some(Outcome { user: repeated.user, report, ..outcome }))
    }

    async fn is_recorded(
        &self,
        finds: &mut OrderedFinds,
        mutation: &Mutation,
        request: &IdempotencyKey,
        subject: Option<LocalityId>,
    ) -> Result<bool, Fault> {
        let id = request_id(request);
        let document = self.find_by_id(finds, &self.requests, id).await?;
        let record = document.as_deref().map(StoredRequest::read).transpose()?;
        let is_ours = |record: &StoredRequest| {
            // A void record of the same line may be left of an earlier import.
            record.prior.time >= mutation.now.time
                && record.prior.subject == subject
                && record.request_hash == request.request_hash
                && !record.is_void_for(mutation)
        };

        Ok(record.as_ref().is_some_and(is_ours))
    }

    /// The answer to a mutation that was carried out before, unless its user is gone.
    async fn repeat(
        &self,
        finds: &mut OrderedFinds,
        mutation: &Mutation,
        subject: Option<LocalityId>,
    ) -> Result<Option<Outcome>, Fault> {
        let (mut read_set, mut needs) = (ReadSet::default(), ReadRequest::default());
        let prior = PriorRequest { time: mutation.now.time, subject, tenant_since: None };
        loop {
            for id in needs.users {
                let user = self.find_by_id(finds, &self.users, id_value(id)).await?;
                let record = match user {
                    Some(user) => Some(self.record(StoredUser::read(&user)?).await?),
                    None => None,
                };
                read_set.add_user(id, record);
            }
            if needs.tenant {
                let name = mutation.tenant.as_str().into();
                let tenant = self.find_by_id(finds, &self.tenants, name).await?;
                read_set.set_tenant(tenant.as_deref().map(read_tenant).transpose()?);
            }
            match mutation.decide_again(prior, &read_set) {
                Ok(Decision::Ready(write_set)) => return Ok(Some(write_set.into_outcome())),
                Ok(Decision::NeedsReads(more)) if !more.users.is_empty() || more.tenant => {
                    needs = more;
                }
                Ok(Decision::NeedsReads(_)) | Err(_) => return Ok(None),
            }
        }
    }

    async fn find_by_id(
        &self,
        finds: &mut OrderedFinds,
        from: &Collection<RawDocumentBuf>,
        id: Bson,
    ) -> Result<Option<RawDocumentBuf>, Fault> {
        finds.find_document(from, doc! { ID: id }, doc! {}, self.time_limit()).await
    }

    async fn revision(
        &self,
        finds: &mut OrderedFinds,
        id: LocalityId,
    ) -> Result<Option<i64>, Fault> {
        let user = self.find_by_id(finds, &self.users, id_value(id)).await?;
        user.map(|document| Ok(StoredUser::read(&document)?.revision)).transpose()
    }
}
