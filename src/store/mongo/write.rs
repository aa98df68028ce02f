//! Mutations: one transaction each, begun again while it meets others, until the time is up; and what becomes of one
//! whose commit got no answer.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use mongodb::bson::doc;
use mongodb::options::ReadConcern;
use tokio::time::{Instant, sleep};

use super::Collections;
use super::error::Fault;
use super::schema::{ID, StoredRequest, StoredUser, by_id, id_value, key_value, read_claim, request_id};
use super::transaction::Transaction;
use crate::directory::{Change, ClaimChanges, Error, Mutation, Request, Timestamp, User, claim_changes};
use crate::identifier::IdentityKey;

/// The first pause before a transaction is begun again, and the longest.
const PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// Why an attempt at a mutation came to nothing, or may have.
enum Failure {
    /// Nothing was written. The caller is told, or it is tried again if the fault is transient.
    Certain(Fault),
    /// Another has the key that this one would take, or had a moment ago.
    Duplicate(ClaimChanges),
    /// The commit got no answer: the user may or may not be like this now.
    Unknown(Box<User>, Fault),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Certain(fault)
    }
}

impl Collections {
    /// Carries a mutation out. Must be run to its end: a transaction that is dropped half-way stays open on the server
    /// until its time is over.
    pub async fn mutate(&self, mutation: &Mutation) -> Result<User, Error> {
        let deadline = Instant::now() + self.timeout;
        let mut pause = PAUSE;
        loop {
            let fault = match self.attempt(mutation, deadline).await {
                Ok(outcome) => return outcome,
                Err(Failure::Unknown(after, fault)) => return self.settle(mutation, *after, fault).await,
                Err(Failure::Duplicate(claims)) => match self.refusal(mutation, &claims).await? {
                    Some(refusal) => return Err(refusal),
                    None => Fault::Contended,
                },
                Err(Failure::Certain(fault)) if fault.is_transient() => fault,
                Err(Failure::Certain(fault)) => return Err(fault.into()),
            };
            if Instant::now() + pause > deadline {
                return Err(fault.into());
            }
            sleep(jittered(pause)).await;
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    async fn attempt(&self, mutation: &Mutation, deadline: Instant) -> Result<Result<User, Error>, Failure> {
        let mut transaction = Transaction::begin(self).await?;
        let step = self.statements(&mut transaction, mutation).await;
        match step {
            Ok(Ok(after)) => match commit(transaction, deadline).await {
                Ok(()) => Ok(Ok(after)),
                Err(fault) if fault.is_unknown_commit() => Err(Failure::Unknown(Box::new(after), fault)),
                Err(fault) => Err(Failure::Certain(fault)),
            },
            Ok(Err(refused)) => {
                transaction.abort().await;
                Ok(Err(refused))
            }
            Err(failure) => {
                transaction.abort().await;
                Err(failure)
            }
        }
    }

    /// All but the commit. The outer error is the store's, the inner one the caller's.
    async fn statements(
        &self,
        transaction: &mut Transaction<'_>,
        mutation: &Mutation,
    ) -> Result<Result<User, Error>, Failure> {
        if let Some(outcome) = repeated(transaction, mutation).await? {
            return Ok(outcome);
        }
        let stored = match mutation.change {
            // An id is given once; if it was not, the insert says so.
            Change::Create(_) => None,
            _ => transaction.user(mutation.user_id).await?,
        };
        let before = stored.as_ref().map(StoredUser::decode).transpose()?;
        let after = match mutation.apply(before.as_ref()) {
            Ok(after) => after,
            Err(refused) => return Ok(Err(refused)),
        };
        let claims = claim_changes(before.as_ref(), &after);
        let written = async {
            match &stored {
                None => transaction.insert_user(&after).await?,
                Some(_) if before.as_ref() == Some(&after) => {}
                Some(stored) => transaction.replace_user(&after, stored.revision).await?,
            }
            transaction.change_claims(after.id, &claims).await?;
            match &mutation.request {
                Some(request) => transaction.remember(request, mutation).await,
                None => Ok(()),
            }
        };
        match written.await {
            Ok(()) => Ok(Ok(after)),
            Err(fault) if fault.is_duplicate() => Err(Failure::Duplicate(claims)),
            Err(fault) => Err(fault.into()),
        }
    }

    /// What a key that exists already means for the caller; nothing where it does no longer, and the mutation can be
    /// tried again.
    async fn refusal(&self, mutation: &Mutation, claims: &ClaimChanges) -> Result<Option<Error>, Fault> {
        if let (Change::Create(_), Some(user)) = (&mutation.change, self.user(mutation).await?) {
            return Ok(mutation.apply(Some(&user.decode()?)).err());
        }
        for key in &claims.taken {
            if let Some(refusal) = self.taken(mutation, key).await? {
                return Ok(Some(refusal));
            }
        }
        Ok(None)
    }

    async fn taken(&self, mutation: &Mutation, key: &IdentityKey) -> Result<Option<Error>, Fault> {
        let filter = by_id(vec![key_value(key)]);
        let find = self.identities.find_one(filter).read_concern(ReadConcern::local()).max_time(self.timeout);
        let Some(claim) = find.await? else { return Ok(None) };
        let (_, owner) = read_claim(&claim)?;
        Ok((owner != mutation.user_id).then(|| mutation.taken(key, owner)))
    }

    async fn user(&self, mutation: &Mutation) -> Result<Option<StoredUser>, Fault> {
        let filter = doc! { ID: id_value(mutation.user_id) };
        let user = self.users.find_one(filter).read_concern(ReadConcern::majority()).max_time(self.timeout).await?;
        user.map(|document| StoredUser::read(&document)).transpose()
    }

    /// Looks for what a commit without an answer has left: what was asked for is there, or nobody can tell yet.
    async fn settle(&self, mutation: &Mutation, after: User, fault: Fault) -> Result<User, Error> {
        let found = match &mutation.request {
            Some(request) => self.answered(mutation, request).await,
            None => self.user(mutation).await.and_then(|user| user.map(|user| user.decode()).transpose()),
        };
        match found {
            Ok(Some(user)) if mutation.request.is_some() || user == after => Ok(user),
            _ => Err(Error::OutcomeUnknown(fault.into())),
        }
    }

    /// The user as it is now, if the request was carried out.
    async fn answered(&self, mutation: &Mutation, request: &Request) -> Result<Option<User>, Fault> {
        let filter = doc! { ID: request_id(request) };
        let find = self.requests.find_one(filter).read_concern(ReadConcern::majority()).max_time(self.timeout);
        let Some(record) = find.await? else { return Ok(None) };
        let record = StoredRequest::read(&record)?;
        if record.user != mutation.user_id || !answers(&record, request, mutation.time) {
            return Ok(None);
        }
        self.user(mutation).await?.map(|user| user.decode()).transpose()
    }
}

/// The answer to a mutation whose request was carried out before.
async fn repeated(
    transaction: &mut Transaction<'_>,
    mutation: &Mutation,
) -> Result<Option<Result<User, Error>>, Fault> {
    let Some(request) = &mutation.request else { return Ok(None) };
    let Some(record) = transaction.request(request).await? else { return Ok(None) };
    if is_over(&record, mutation.time) {
        return Ok(None);
    }
    if record.fingerprint != request.fingerprint {
        return Ok(Some(Err(Error::RequestIdReused)));
    }
    let user = transaction.user(record.user).await?.map(|user| user.decode()).transpose()?;
    Ok(Some(user.ok_or(Error::UserNotFound)))
}

fn answers(record: &StoredRequest, request: &Request, now: Timestamp) -> bool {
    record.fingerprint == request.fingerprint && !is_over(record, now)
}

fn is_over(record: &StoredRequest, now: Timestamp) -> bool {
    record.time.as_millis() + Request::LIFETIME_MILLIS <= now.as_millis()
}

/// Sends the commit until it gets an answer or the time is up.
async fn commit(mut transaction: Transaction<'_>, deadline: Instant) -> Result<(), Fault> {
    if Instant::now() >= deadline {
        transaction.abort().await;
        return Err(Fault::Late);
    }
    let mut pause = PAUSE;
    loop {
        match transaction.commit().await {
            Err(fault) if fault.is_unknown_commit() && Instant::now() + pause < deadline => {
                sleep(jittered(pause)).await;
                pause = LONGEST_PAUSE.min(pause * 2);
            }
            outcome => return outcome,
        }
    }
}

/// A pause between half and all of `pause`, so that those who met once do not meet again.
fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().hash_one(0) >> 40;
    pause.mul_f64(0.5 + random as f64 / (1_u64 << 25) as f64)
}
