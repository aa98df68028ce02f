//! Mutations: one transaction each, which is repeated until the deadline while it conflicts with
//! others, or if its snapshot may be stale.

use crate::bulk_changes::begins;
use crate::client::backoff::Backoff;
use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::database::commit::{commit, commit_reads};
use crate::database::freshness::{Freshness, Key};
use crate::database::transaction::Transaction;
use crate::inbox::inboxes::InboxWork;
use crate::mutation::commit_gate::CommitGate;
use crate::mutation::recovery::Unconfirmed;
use crate::mutation::visibility::Written;
use crate::schema::versions::Versions;
use polynym_directory::{
    Decision, Error, IdempotencyKey, Mutation, Outcome, PriorRequest, ReadRequest, ReadSet, Write,
    WriteSet,
};
use polynym_store_common::searched::IndexedAttributes;

/// The reason why an attempt at a mutation failed, or may have failed.
enum AttemptError {
    /// The rules reject it.
    Rejected(Error),
    /// The decision rests on reads that may be older than the call.
    Stale,
    /// It failed, and wrote nothing.
    NotWritten(Fault),
    /// The commit was not confirmed.
    Unknown(Box<Unconfirmed>),
}

impl From<Fault> for AttemptError {
    fn from(fault: Fault) -> Self {
        Self::NotWritten(fault)
    }
}

/// The decision on a mutation, with the reads that it rests on.
struct Decided {
    write_set: Box<WriteSet>,
    read_set: ReadSet,
    /// The request to record.
    request: Option<IdempotencyKey>,
}

impl Decided {
    /// Whether it writes the document of this key.
    fn writes(&self, key: &Key) -> bool {
        if matches!(key, Key::Request) {
            return self.request.is_some();
        }

        self.write_set.writes.iter().any(|write| match (key, write) {
            (Key::User(id), Write::PutUser(record)) => record.id() == *id,
            (Key::User(id), Write::RemoveUser(other)) => other == id,
            (Key::User(id), Write::ReplaceEvents(part, _)) => part.user == *id,
            (Key::Claim(key), Write::Claim(written, _)) => written == key,
            (Key::Tenant, Write::PutTenant(_) | Write::RemoveTenant) => true,
            (Key::Bulk(id), Write::PutBulkChange(change)) => change.id == *id,
            (Key::Bulk(id), Write::RemoveBulkChange(other)) => other == id,
            (Key::RunningBulk, Write::PutBulkChange(change)) => begins(change, &self.read_set),
            (Key::Delivery(id), Write::PutDelivery(delivery)) => delivery.id == *id,
            (Key::Delivery(id), Write::RemoveDelivery(other)) => other == id,
            (Key::Deliveries, Write::PutDelivery(_)) => {
                matches!(self.read_set.deliveries.delivery, Some(None))
            }
            _ => false,
        })
    }

    fn writes_nothing(&self) -> bool {
        self.write_set.writes.is_empty() && self.request.is_none()
    }
}

impl Collections {
    /// Executes a mutation, unless the gate closes before its commit. Must run to its end: the
    /// server keeps an abandoned transaction open until its lifetime ends. Returns the inboxes to
    /// clean up, too.
    pub async fn mutate(
        &self,
        mutation: &Mutation,
        gate: &CommitGate,
    ) -> Result<(Outcome, InboxWork), Error> {
        let mut backoff = Backoff::for_transaction(gate.deadline());
        let mut freshness = Freshness::default();
        // A new claim nearly always succeeds: inserting it without reading it first saves a read.
        let mut is_optimistic = true;

        loop {
            let versions = self.version_guard.versions()?;
            versions.stored_rules().check(mutation)?;
            let fault = match self
                .attempt(mutation, versions, is_optimistic, gate, &mut freshness)
                .await
            {
                Ok(outcome) => return Ok(outcome),
                Err(AttemptError::Rejected(error)) => return Err(error),
                Err(AttemptError::Unknown(unconfirmed)) => {
                    return self.recover(mutation, *unconfirmed).await;
                }
                Err(AttemptError::Stale) if gate.is_closed() => return Err(Fault::TimedOut.into()),
                Err(AttemptError::Stale) => continue,
                Err(AttemptError::NotWritten(fault)) => fault,
            };
            // The claim exists: the next attempt reads claims first.
            if fault.is_duplicate() && std::mem::take(&mut is_optimistic) {
                continue;
            }
            // The known versions are seconds old: the store may have been upgraded since.
            if fault.suggests_upgrade() && self.is_upgraded(versions).await? && !gate.is_closed() {
                continue;
            }
            if !(fault.is_transient() || fault.is_duplicate()) || !backoff.wait().await {
                return Err(fault.into());
            }
        }
    }

    /// Whether the versions of the store have changed. Reads them again.
    async fn is_upgraded(&self, versions: Versions) -> Result<bool, Fault> {
        self.version_guard.refresh(&self.database).await?;
        Ok(self.version_guard.versions()? != versions)
    }

    async fn attempt(
        &self,
        mutation: &Mutation,
        versions: Versions,
        is_optimistic: bool,
        gate: &CommitGate,
        freshness: &mut Freshness,
    ) -> Result<(Outcome, InboxWork), AttemptError> {
        let mut transaction =
            Transaction::begin(self, freshness, gate.deadline()).await?.with_versions(versions);
        let decision = decide(&mut transaction, mutation, is_optimistic).await;
        let written = match check_fresh(&transaction, decision, freshness) {
            Ok(_) if gate.is_closed() => Err(Fault::TimedOut.into()),
            Ok(decided) => self.write(&mut transaction, &decided, mutation).await.map(|()| decided),
            error => error,
        };
        transaction.record_into(freshness);

        match written {
            // A read-only transaction is committed too, so that its reads are majority-committed.
            Ok(decided) if decided.writes_nothing() => {
                let commit = commit_reads(transaction, gate.deadline()).await?;
                let outcome = decided.write_set.into_outcome();
                if mutation.request.is_some() {
                    outcome.user.iter().for_each(|user| self.forget_user(user));
                    // A shard may not have applied the earlier attempt yet.
                    let mut written = Written::default();
                    written.add_earlier(mutation, &outcome);
                    self.wait_until_visible(&commit.times, &written).await?;
                }
                Ok((outcome, InboxWork::default()))
            }
            Err(AttemptError::Rejected(error)) => {
                commit_reads(transaction, gate.deadline()).await?;
                Err(AttemptError::Rejected(error))
            }
            Ok(decided) if gate.pass() => {
                self.commit_writes(transaction, mutation, decided.write_set, gate).await
            }
            failed => {
                transaction.abort().await;
                Err(failed.err().unwrap_or(AttemptError::NotWritten(Fault::TimedOut)))
            }
        }
    }

    async fn commit_writes(
        &self,
        transaction: Transaction<'_>,
        mutation: &Mutation,
        write_set: Box<WriteSet>,
        gate: &CommitGate,
    ) -> Result<(Outcome, InboxWork), AttemptError> {
        let (subject, inboxes) = (write_set.subject, InboxWork::of(&write_set, mutation));
        let pending = self.pending_write(write_set.writes.iter());
        let written = self.written(write_set.writes.iter(), mutation);
        let revision = subject.map(|id| transaction.written_revision(id));
        let fault = match commit(transaction, gate.deadline()).await {
            Ok(commit) if commit.was_resent => {
                match self.wait_until_visible(&commit.times, &written).await {
                    Ok(()) => return Ok((write_set.into_outcome(), inboxes)),
                    Err(fault) => fault,
                }
            }
            Ok(_) => return Ok((write_set.into_outcome(), inboxes)),
            Err(fault) if fault.is_unknown_commit() => fault,
            Err(fault) => {
                gate.reopen();
                return Err(fault.into());
            }
        };
        let outcome = write_set.into_outcome();
        let unconfirmed =
            Unconfirmed { subject, revision, outcome, fault, written, inboxes, pending };
        Err(AttemptError::Unknown(Box::new(unconfirmed)))
    }

    async fn write(
        &self,
        transaction: &mut Transaction<'_>,
        decided: &Decided,
        mutation: &Mutation,
    ) -> Result<(), AttemptError> {
        let users: Vec<_> = decided.write_set.users().collect();
        let names = self.names_with(&mutation.tenant, mutation.tenant_since, &users).await?;
        let names = names.map_err(AttemptError::Rejected)?;
        let tokens = IndexedAttributes { names: &names, policies: &mutation.policies };
        let read_and_write_set = (&decided.read_set, &*decided.write_set);
        transaction.write(mutation, read_and_write_set, tokens).await?;
        if let Some(request) = &decided.request {
            transaction.record_request(request, &decided.write_set, mutation).await?;
        }
        Ok(())
    }
}

/// Reads what the mutation needs, and decides it.
async fn decide(
    transaction: &mut Transaction<'_>,
    mutation: &Mutation,
    is_optimistic: bool,
) -> Result<Decided, AttemptError> {
    let prior = prior_request(transaction, mutation).await?;
    let mut read_set = if is_optimistic { ReadSet::optimistic() } else { ReadSet::default() };
    let mut needed =
        if is_optimistic || prior.is_some() { ReadRequest::default() } else { mutation.needs() };
    loop {
        transaction.read(mutation, needed, &mut read_set).await?;
        let decision = match prior {
            Some(prior) => mutation.decide_again(prior, &read_set),
            None => mutation.decide(&read_set),
        };
        match decision.map_err(AttemptError::Rejected)? {
            Decision::Ready(write_set) => {
                let request = mutation.request.clone().filter(|_| write_set.completes_request());
                return Ok(Decided { write_set, read_set, request });
            }
            Decision::NeedsReads(more) => needed = more,
        }
    }
}

/// The decision, unless it rests on stale reads of documents that it does not write.
fn check_fresh(
    transaction: &Transaction<'_>,
    decided: Result<Decided, AttemptError>,
    freshness: &Freshness,
) -> Result<Decided, AttemptError> {
    let is_fresh = match &decided {
        Ok(decided) => transaction.is_fresh(freshness, |key| decided.writes(key)),
        Err(AttemptError::Rejected(_)) => transaction.is_fresh(freshness, |_| false),
        Err(_) => true,
    };
    if is_fresh { decided } else { Err(AttemptError::Stale) }
}

/// The mutation's request, if an earlier attempt completed it.
async fn prior_request(
    transaction: &mut Transaction<'_>,
    mutation: &Mutation,
) -> Result<Option<PriorRequest>, AttemptError> {
    let Some(request) = &mutation.request else { return Ok(None) };
    match transaction.request(request).await? {
        Some(record) if record.is_void_for(mutation) => Ok(None),
        Some(record) if record.request_hash == request.request_hash => Ok(Some(record.prior)),
        Some(_) => Err(AttemptError::Rejected(Error::RequestIdReused)),
        None => Ok(None),
    }
}
