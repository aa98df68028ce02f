//! Mutations: one transaction each, begun again while it meets others, until the time is up; and what becomes of one
//! whose commit got no answer.

use super::Collections;
use super::commit::{Unconfirmed, commit, confirm};
use super::error::Fault;
use super::gate::Gate;
use super::pauses::Pauses;
use super::transaction::Transaction;
use crate::directory::{Decision, Effects, Error, Mutation, Needs, Outcome, Request, View};
use crate::locality::LocalityId;

/// Why an attempt at a mutation came to nothing, or may have.
enum Failure {
    /// The rules refuse it.
    Refused(Error),
    /// Nothing was written.
    Certain(Fault),
    /// The commit was not confirmed.
    Unknown(Box<Unconfirmed>),
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
                Err(Failure::Unknown(unconfirmed)) => return self.recover(mutation, *unconfirmed).await,
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
                confirm(transaction, gate.deadline()).await?;
                return Err(Failure::Refused(error));
            }
            outcome => {
                transaction.abort().await;
                return Err(outcome.err().unwrap_or(Failure::Certain(Fault::Late)));
            }
        };
        let (subject, revision) = (effects.subject, transaction.written_revision(effects.subject));
        match commit(transaction, gate.deadline()).await {
            Ok(()) => Ok(effects.into_outcome()),
            Err(fault) if fault.is_unknown_commit() => {
                let outcome = effects.into_outcome();
                Err(Failure::Unknown(Box::new(Unconfirmed { subject, revision, outcome, fault })))
            }
            Err(fault) => {
                gate.back();
                Err(fault.into())
            }
        }
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
