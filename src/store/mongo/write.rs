//! Mutations: one transaction each, begun again while it meets others, until the time is up; and what becomes of one
//! whose commit got no answer.

use mongodb::bson::doc;
use mongodb::options::ReadConcern;
use tokio::time::Instant;

use super::error::Fault;
use super::gate::Gate;
use super::pauses::Pauses;
use super::schema::{ID, StoredRequest, StoredUser, id_value, request_id};
use super::transaction::Transaction;
use super::{Collections, PATIENCE};
use crate::directory::{Decision, Effects, Error, Mutation, Needs, Outcome, Report, Request, User, View};
use crate::locality::LocalityId;

/// Why an attempt at a mutation came to nothing, or may have.
enum Failure {
    /// The rules refuse it.
    Refused(Error),
    /// Nothing was written.
    Certain(Fault),
    /// The commit got no answer: this may be so now or not.
    Unknown(LocalityId, Outcome, Fault),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Certain(fault)
    }
}

impl Collections {
    /// Carries a mutation out. Must be run to its end: a transaction that is dropped half-way stays open on the server
    /// until its time is over. What has not passed the gate by the time it closes is not done.
    pub async fn mutate(&self, mutation: &Mutation, gate: &Gate) -> Result<Outcome, Error> {
        let mut pauses = Pauses::of_transaction(gate.deadline());
        // What is to be taken is free nearly always: finding out when it is inserted saves reading it before.
        let mut assume_free = true;
        loop {
            let fault = match self.attempt(mutation, assume_free, gate).await {
                Ok(outcome) => return Ok(outcome),
                Err(Failure::Refused(error)) => return Err(error),
                Err(Failure::Unknown(subject, outcome, fault)) => {
                    return self.settle(mutation, subject, outcome, fault).await;
                }
                Err(Failure::Certain(fault)) => fault,
            };
            if fault.is_duplicate() && std::mem::take(&mut assume_free) {
                continue;
            }
            if !(fault.is_transient() || fault.is_duplicate()) || !pauses.wait().await {
                return Err(fault.into());
            }
        }
    }

    async fn attempt(&self, mutation: &Mutation, assume_free: bool, gate: &Gate) -> Result<Outcome, Failure> {
        let mut transaction = Transaction::begin(self).await?;
        let effects = match statements(&mut transaction, mutation, assume_free, gate).await {
            Ok(effects) if gate.pass() => effects,
            // What a refusal was read from must be there to stay: committing what has only read waits for that.
            Err(Failure::Refused(error)) => {
                commit(transaction, gate.deadline()).await?;
                return Err(Failure::Refused(error));
            }
            outcome => {
                transaction.abort().await;
                return Err(outcome.err().unwrap_or(Failure::Certain(Fault::Late)));
            }
        };
        let subject = effects.subject;
        match commit(transaction, gate.deadline()).await {
            Ok(()) => Ok(effects.into_outcome()),
            Err(fault) if fault.is_unknown_commit() => Err(Failure::Unknown(subject, effects.into_outcome(), fault)),
            Err(fault) => {
                gate.back();
                Err(fault.into())
            }
        }
    }

    /// Looks for what a commit without an answer has left: what was asked for is there, or nobody can tell yet.
    async fn settle(
        &self,
        mutation: &Mutation,
        subject: LocalityId,
        outcome: Outcome,
        fault: Fault,
    ) -> Result<Outcome, Error> {
        let happened = async {
            match &mutation.request {
                Some(request) => self.is_remembered(mutation, request, subject).await,
                None => self.is_done(mutation, subject, &outcome).await,
            }
        };
        match happened.await {
            Ok(true) => Ok(outcome),
            Ok(false) | Err(_) => Err(Error::OutcomeUnknown(fault.into())),
        }
    }

    /// Whether what there is now is what the mutation would have left.
    async fn is_done(&self, mutation: &Mutation, subject: LocalityId, outcome: &Outcome) -> Result<bool, Fault> {
        match &outcome.report {
            Report::Tenant(tenant) => Ok(self.tenant(&mutation.tenant).await?.as_ref() == Some(tenant)),
            Report::Purged(_) => Ok(self.user(subject).await?.is_none()),
            _ => Ok(self.user(subject).await?.is_some_and(|user| Some(user) == outcome.user)),
        }
    }

    async fn is_remembered(&self, mutation: &Mutation, request: &Request, subject: LocalityId) -> Result<bool, Fault> {
        let filter = doc! { ID: request_id(request) };
        let find = self.requests.find_one(filter).read_concern(ReadConcern::majority()).max_time(self.timeout);
        let record = find.await?.map(|document| StoredRequest::read(&document)).transpose()?;
        let is_ours = |record: &StoredRequest| {
            record.user == subject
                && record.fingerprint == request.fingerprint
                && !Request::is_over(record.time, mutation.time)
        };
        Ok(record.as_ref().is_some_and(is_ours))
    }

    async fn user(&self, id: LocalityId) -> Result<Option<User>, Fault> {
        let filter = doc! { ID: id_value(id) };
        let user = self.users.find_one(filter).read_concern(ReadConcern::majority()).max_time(self.timeout).await?;
        let record = user.map(|document| StoredUser::read(&document)?.decode()).transpose()?;
        Ok(record.map(|record| record.user))
    }
}

/// All but the commit.
async fn statements(
    transaction: &mut Transaction<'_>,
    mutation: &Mutation,
    assume_free: bool,
    gate: &Gate,
) -> Result<Box<Effects>, Failure> {
    let again = repeated(transaction, mutation).await?;
    let mut view = if assume_free { View::assuming_free() } else { View::default() };
    let mut needs = if assume_free || again.is_some() { Needs::default() } else { mutation.needs() };
    let effects = loop {
        transaction.read(mutation, needs, &mut view).await?;
        let decision = match again {
            Some(subject) => mutation.decide_again(subject, &view),
            None => mutation.decide(&view),
        };
        match decision.map_err(Failure::Refused)? {
            Decision::Done(effects) => break effects,
            Decision::Read(more) => needs = more,
        }
    };
    if gate.is_closed() {
        return Err(Fault::Late.into());
    }
    transaction.write(&effects).await?;
    if let Some(request) = mutation.request.as_ref().filter(|_| again.is_none()) {
        transaction.remember(request, effects.subject, mutation.time).await?;
    }
    Ok(effects)
}

/// The user whom the answer to this very request was about, if it was carried out before.
async fn repeated(transaction: &mut Transaction<'_>, mutation: &Mutation) -> Result<Option<LocalityId>, Failure> {
    let Some(request) = &mutation.request else { return Ok(None) };
    match transaction.request(request).await? {
        Some(record) if Request::is_over(record.time, mutation.time) => Ok(None),
        Some(record) if record.fingerprint == request.fingerprint => Ok(Some(record.user)),
        Some(_) => Err(Failure::Refused(Error::RequestIdReused)),
        None => Ok(None),
    }
}

/// Sends the commit until it gets an answer or the time is up.
pub async fn commit(mut transaction: Transaction<'_>, deadline: Instant) -> Result<(), Fault> {
    let deadline = deadline.max(Instant::now() + PATIENCE);
    let mut pauses = Pauses::of_transaction(deadline);
    loop {
        match transaction.commit().await {
            Err(fault) if fault.is_unknown_commit() && pauses.wait().await => {}
            outcome => return outcome,
        }
    }
}
