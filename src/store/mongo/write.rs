//! Mutations: one transaction each, begun again while it meets others, until the time is up; and
//! again on a later snapshot, where what it does not write may have been read too early.

use locality_uuid::LocalityId;

use super::backoff::Backoff;
use super::collections::Collections;
use super::commit::{Unconfirmed, commit, confirm};
use super::commit_gate::CommitGate;
use super::error::Fault;
use super::freshness::{Freshness, Key};
use super::transaction::Transaction;
use super::versions::Versions;
use crate::directory::error::Error;
use crate::directory::mutation::read_set::{
    Decision, Outcome, ReadRequest, ReadSet, Write, WriteSet,
};
use crate::directory::mutation::{IdempotencyKey, Mutation};
use crate::store::searched::IndexedAttributes;

/// Why an attempt at a mutation came to nothing, or may have.
enum AttemptError {
    /// The rules refuse it.
    Refused(Error),
    /// It was decided on what may have changed before the call.
    Stale,
    /// The mutation wrote nothing.
    Certain(Fault),
    /// The commit was not confirmed.
    Unknown(Box<Unconfirmed>),
}

impl From<Fault> for AttemptError {
    fn from(fault: Fault) -> Self {
        Self::Certain(fault)
    }
}

/// The decision on a mutation.
struct Decided {
    write_set: Box<WriteSet>,
    read_set: ReadSet,
    /// The request under which it is to be remembered.
    remembered: Option<IdempotencyKey>,
}

impl Decided {
    fn writes(&self, key: &Key) -> bool {
        let writes_it = |write: &Write| match (key, write) {
            (Key::User(id), Write::PutUser(record)) => record.id() == *id,
            (Key::User(id), Write::RemoveUser(other) | Write::ReplaceEvents(other, _)) => {
                other == id
            }
            (Key::Claim(key), Write::Claim(written, _)) => written == key,
            (Key::Tenant, Write::PutTenant(_) | Write::RemoveTenant) => true,
            _ => false,
        };
        match key {
            Key::Request => self.remembered.is_some(),
            _ => self.write_set.writes.iter().any(writes_it),
        }
    }

    fn writes_nothing(&self) -> bool {
        self.write_set.writes.is_empty() && self.remembered.is_none()
    }
}

impl Collections {
    /// Carries a mutation out. Must be run to its end: a transaction that is dropped half-way stays
    /// open on the server until its time is over. What has not passed the gate by the time it
    /// closes is not done.
    pub async fn mutate(&self, mutation: &Mutation, gate: &CommitGate) -> Result<Outcome, Error> {
        let mut backoff = Backoff::of_transaction(gate.deadline());
        let mut freshness = Freshness::default();
        // A key that is to be claimed is nearly always free: inserting it without reading it first
        // saves a read.
        let mut is_optimistic = true;

        loop {
            let versions = self.fence.versions()?;
            versions.stored_rules().check(mutation)?;
            let fault =
                match self.attempt(mutation, versions, is_optimistic, gate, &mut freshness).await {
                    Ok(outcome) => return Ok(outcome),
                    Err(AttemptError::Refused(error)) => return Err(error),
                    Err(AttemptError::Unknown(unconfirmed)) => {
                        return self.recover(mutation, *unconfirmed).await;
                    }
                    Err(AttemptError::Stale) if gate.is_closed() => return Err(Fault::Late.into()),
                    Err(AttemptError::Stale) => continue,
                    Err(AttemptError::Certain(fault)) => fault,
                };
            if fault.is_duplicate() && std::mem::take(&mut is_optimistic) {
                continue;
            }
            // The versions that were read last are seconds old: the store may have been upgraded
            // since.
            if fault.is_fenced() && self.is_upgraded(versions).await? && !gate.is_closed() {
                continue;
            }
            if !(fault.is_transient() || fault.is_duplicate()) || !backoff.wait().await {
                return Err(fault.into());
            }
        }
    }

    /// Whether the store has other versions by now than these.
    async fn is_upgraded(&self, versions: Versions) -> Result<bool, Fault> {
        self.fence.refresh(&self.database).await?;
        Ok(self.fence.versions()? != versions)
    }

    async fn attempt(
        &self,
        mutation: &Mutation,
        versions: Versions,
        is_optimistic: bool,
        gate: &CommitGate,
        freshness: &mut Freshness,
    ) -> Result<Outcome, AttemptError> {
        let mut transaction = Transaction::begin(self, freshness).await?.under(versions);
        let decided = decide(&mut transaction, mutation, is_optimistic).await;
        let decided = match checked(&transaction, decided, freshness) {
            Ok(_) if gate.is_closed() => Err(Fault::Late.into()),
            Ok(decided) => {
                self.write(&mut transaction, &decided, mutation, versions).await.map(|()| decided)
            }
            refused => refused,
        };
        transaction.teach(freshness);

        match decided {
            // A transaction that has only read is committed too: then its reads are
            // majority-committed.
            Ok(decided) if decided.writes_nothing() => {
                confirm(transaction, gate.deadline()).await?;
                let outcome = decided.write_set.into_outcome();
                if mutation.request.is_some() {
                    outcome.user.iter().for_each(|user| self.forget_user(user));
                }
                Ok(outcome)
            }
            Err(AttemptError::Refused(error)) => {
                confirm(transaction, gate.deadline()).await?;
                Err(AttemptError::Refused(error))
            }
            Ok(decided) if gate.pass() => commit_writes(transaction, decided.write_set, gate).await,
            outcome => {
                transaction.abort().await;
                Err(outcome.err().unwrap_or(AttemptError::Certain(Fault::Late)))
            }
        }
    }

    async fn write(
        &self,
        transaction: &mut Transaction<'_>,
        decided: &Decided,
        mutation: &Mutation,
        versions: Versions,
    ) -> Result<(), AttemptError> {
        let users: Vec<_> = decided.write_set.users().collect();
        let names = if versions.has_tokens() && !users.is_empty() {
            let names = self.names_with(&mutation.tenant, mutation.tenant_since, &users).await?;
            Some(names.map_err(AttemptError::Refused)?)
        } else {
            None
        };

        let tokens =
            names.as_deref().map(|names| IndexedAttributes { names, policies: &mutation.policies });
        let sets = (&decided.read_set, &*decided.write_set);
        transaction.write(mutation, sets, tokens).await?;
        transaction.confirm_epoch().await?;
        if let Some(request) = &decided.remembered {
            transaction.remember(request, decided.write_set.subject, mutation.time).await?;
        }
        Ok(())
    }
}

/// Reads what the mutation needs, and decides what is to be done.
async fn decide(
    transaction: &mut Transaction<'_>,
    mutation: &Mutation,
    is_optimistic: bool,
) -> Result<Decided, AttemptError> {
    let again = repeated(transaction, mutation).await?;
    let mut read_set = if is_optimistic { ReadSet::optimistic() } else { ReadSet::default() };
    let mut needs =
        if is_optimistic || again.is_some() { ReadRequest::default() } else { mutation.needs() };
    loop {
        transaction.read(mutation, needs, &mut read_set).await?;
        let decision = match again {
            Some(subject) => mutation.decide_again(subject, &read_set),
            None => mutation.decide(&read_set),
        };
        match decision.map_err(AttemptError::Refused)? {
            Decision::Ready(write_set) => {
                let is_done = again.is_none() && !write_set.is_partial();
                let remembered = mutation.request.clone().filter(|_| is_done);
                return Ok(Decided { write_set, read_set, remembered });
            }
            Decision::NeedsReads(more) => needs = more,
        }
    }
}

/// The decision, unless it rests on what is not written and may have been read too early.
fn checked(
    transaction: &Transaction<'_>,
    decided: Result<Decided, AttemptError>,
    freshness: &Freshness,
) -> Result<Decided, AttemptError> {
    let is_fresh = match &decided {
        Ok(decided) => transaction.is_fresh(freshness, |key| decided.writes(key)),
        Err(AttemptError::Refused(_)) => transaction.is_fresh(freshness, |_| false),
        Err(_) => true,
    };
    if is_fresh { decided } else { Err(AttemptError::Stale) }
}

async fn commit_writes(
    transaction: Transaction<'_>,
    write_set: Box<WriteSet>,
    gate: &CommitGate,
) -> Result<Outcome, AttemptError> {
    let subject = write_set.subject;
    let pending = transaction.collections.pending_write(write_set.writes.iter());
    let revision = subject.map(|id| transaction.written_revision(id));
    match commit(transaction, gate.deadline()).await {
        Ok(()) => Ok(write_set.into_outcome()),
        Err(fault) if fault.is_unknown_commit() => {
            let outcome = write_set.into_outcome();
            let unconfirmed = Unconfirmed { subject, revision, outcome, fault, pending };
            Err(AttemptError::Unknown(Box::new(unconfirmed)))
        }
        Err(fault) => {
            gate.back();
            Err(fault.into())
        }
    }
}

/// The subject of this very request, if it was carried out before.
async fn repeated(
    transaction: &mut Transaction<'_>,
    mutation: &Mutation,
) -> Result<Option<Option<LocalityId>>, AttemptError> {
    let Some(request) = &mutation.request else { return Ok(None) };
    match transaction.request(request).await? {
        Some(record) if mutation.forgets(record.time) => Ok(None),
        Some(record) if record.request_hash == request.request_hash => Ok(Some(record.subject)),
        Some(_) => Err(AttemptError::Refused(Error::RequestIdReused)),
        None => Ok(None),
    }
}
