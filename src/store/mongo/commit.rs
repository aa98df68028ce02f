//! The end of a transaction: the commit, sent until it is answered, and the search for the outcome
//! of one that was not.

use locality_uuid::LocalityId;
use mongodb::Collection;
use mongodb::bson::{Bson, RawDocumentBuf, doc};
use mongodb::options::{ReadConcern, ReadPreference, SelectionCriteria};
use tokio::time::Instant;

use super::MIN_COMMIT_WAIT;
use super::backoff::Backoff;
use super::collections::Collections;
use super::error::Fault;
use super::schema::{ID, StoredRequest, StoredUser, id_value, read_tenant, request_id};
use super::transaction::Transaction;
use crate::directory::error::Error;
use crate::directory::mutation::read_set::{
    Decision, MutationReport, Outcome, ReadRequest, ReadSet,
};
use crate::directory::mutation::{IdempotencyKey, Mutation};
use crate::store::lookup_cache::PendingWrite;

/// Repetitions of a commit that MongoDB does not ask for. One more answer often decides.
const RESENT: usize = 3;

/// Sends the commit until it is answered or the time is up.
///
/// # Errors
/// A transient fault: nothing was written. One that [is unknown](Fault::is_unknown_commit): look
/// for the outcome.
pub async fn commit(mut transaction: Transaction<'_>, deadline: Instant) -> Result<(), Fault> {
    let deadline = deadline.max(Instant::now() + MIN_COMMIT_WAIT);
    let mut backoff = Backoff::of_transaction(deadline);
    let mut resent = 0;
    loop {
        let Err(fault) = transaction.commit().await else { return Ok(()) };
        resent += usize::from(!fault.is_retriable_commit());
        if !fault.is_unknown_commit() || resent > RESENT || !backoff.wait().await {
            return Err(fault);
        }
    }
}

/// Commits a transaction that has only read: what it has read is then what a majority has.
///
/// # Errors
/// [`Fault`]. Nothing was written.
pub async fn confirm(transaction: Transaction<'_>, deadline: Instant) -> Result<(), Fault> {
    commit(transaction, deadline).await.map_err(Fault::of_reads)
}

/// A mutation whose commit was not confirmed: it may have happened or not.
pub struct Unconfirmed {
    /// The user that the answer is about.
    pub subject: Option<LocalityId>,
    /// The revision of that user after the mutation.
    pub revision: Option<i64>,
    /// The outcome where it has happened.
    pub outcome: Outcome,
    /// The fault of the commit.
    pub fault: Fault,
    /// Removes the written users and keys from the cache when it is dropped, which is after the
    /// search for the outcome.
    pub pending: Option<PendingWrite>,
}

impl Collections {
    /// The outcome of a mutation whose commit was not confirmed, with the user as it is now, where
    /// the mutation is found to have happened.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] where that is not found: the commit may still be under way.
    pub async fn recover(
        &self,
        mutation: &Mutation,
        unconfirmed: Unconfirmed,
    ) -> Result<Outcome, Error> {
        let found = match &mutation.request {
            Some(request) => self.found_remembered(mutation, request, &unconfirmed).await,
            None => self.found_written(mutation, &unconfirmed).await,
        };
        let Unconfirmed { fault, pending, .. } = unconfirmed;
        // The commit may have been under way until now.
        drop(pending);
        found.ok().flatten().ok_or_else(|| Error::OutcomeUnknown(fault.into()))
    }

    /// The outcome where what is stored is what the mutation has written.
    async fn found_written(
        &self,
        mutation: &Mutation,
        of: &Unconfirmed,
    ) -> Result<Option<Outcome>, Fault> {
        let is_written = match &of.outcome.report {
            MutationReport::Tenant(tenant) => {
                self.tenant(&mutation.tenant).await?.as_ref() == Some(tenant)
            }
            report => match of.subject {
                None => false,
                Some(id) if matches!(report, MutationReport::Purged(_)) => {
                    self.revision(id).await?.is_none()
                }
                Some(id) => self.revision(id).await? == of.revision,
            },
        };

        Ok(is_written.then(|| of.outcome.clone()))
    }

    /// The outcome where the request is remembered. Others may have changed the user since: the
    /// answer shows it as it is.
    async fn found_remembered(
        &self,
        mutation: &Mutation,
        request: &IdempotencyKey,
        of: &Unconfirmed,
    ) -> Result<Option<Outcome>, Fault> {
        if !self.is_remembered(mutation, request, of.subject).await? {
            return Ok(None);
        }
        let outcome = of.outcome.clone();
        let Some(repeated) = self.repeat(mutation, of.subject).await? else {
            return Ok(Some(outcome));
        };

        let report = match &outcome.report {
            MutationReport::Tenant(_) => repeated.report,
            report => report.clone(),
        };
        Ok(Some(Outcome { user: repeated.user, report, ..outcome }))
    }

    async fn is_remembered(
        &self,
        mutation: &Mutation,
        request: &IdempotencyKey,
        subject: Option<LocalityId>,
    ) -> Result<bool, Fault> {
        let filter = doc! { ID: request_id(request) };
        let find = self
            .requests
            .find_one(filter)
            .read_concern(ReadConcern::majority())
            .max_time(self.timeout);
        let record = find.await?.map(|document| StoredRequest::read(&document)).transpose()?;
        let is_ours = |record: &StoredRequest| {
            record.subject == subject
                && record.request_hash == request.request_hash
                && !mutation.forgets(record.time)
        };

        Ok(record.as_ref().is_some_and(is_ours))
    }

    /// The answer to a mutation that was carried out before. None where its user is gone since. Its
    /// commit may have become visible on one shard before another: linearizable reads wait for the
    /// rest.
    async fn repeat(
        &self,
        mutation: &Mutation,
        subject: Option<LocalityId>,
    ) -> Result<Option<Outcome>, Fault> {
        let (mut read_set, mut needs) = (ReadSet::default(), ReadRequest::default());
        loop {
            for id in needs.users {
                let user = self.latest(&self.users, id_value(id)).await?;
                let record = match user {
                    Some(user) => Some(self.record(StoredUser::read(&user)?).await?),
                    None => None,
                };
                read_set.add_user(id, record);
            }
            if needs.tenant {
                let tenant = self.latest(&self.tenants, mutation.tenant.as_str().into()).await?;
                read_set.set_tenant(tenant.map(|tenant| read_tenant(&tenant)).transpose()?);
            }
            match mutation.decide_again(subject, &read_set) {
                Ok(Decision::Ready(write_set)) => return Ok(Some(write_set.into_outcome())),
                Ok(Decision::NeedsReads(more)) => needs = more,
                Err(_) => return Ok(None),
            }
        }
    }

    async fn latest(
        &self,
        from: &Collection<RawDocumentBuf>,
        id: Bson,
    ) -> Result<Option<RawDocumentBuf>, Fault> {
        let find = from.find_one(doc! { ID: id }).read_concern(ReadConcern::linearizable());
        let primary = SelectionCriteria::ReadPreference(ReadPreference::Primary);
        Ok(find.selection_criteria(primary).max_time(self.timeout).await?)
    }

    async fn revision(&self, id: LocalityId) -> Result<Option<i64>, Fault> {
        let user =
            self.users.find_one(doc! { ID: id_value(id) }).read_concern(ReadConcern::majority());
        let user = user.max_time(self.timeout).await?;
        user.map(|document| Ok(StoredUser::read(&document)?.revision)).transpose()
    }
}
