//! The tables inside one write transaction, and how a mutation changes them. A mutation is decided before its first
//! write, so that one that is refused leaves nothing behind for the others of its group.

use prost::Message;
use redb::{ReadableTable, Table, WriteTransaction};

use super::error::Fault;
use super::schema::{
    IDENTITIES, REQUEST_TIMES, REQUESTS, RequestRecord, USERS, decode_claim, decode_user, encode_claim, encode_user,
};
use crate::directory::{ClaimWrite, Decision, Effects, Error, Mutation, Needs, Outcome, Request, Timestamp, View};
use crate::locality::LocalityId;

pub struct Tables<'t> {
    users: Table<'t, &'static [u8; 16], &'static [u8]>,
    identities: Table<'t, &'static [u8], &'static [u8]>,
    requests: Table<'t, &'static str, &'static [u8]>,
    request_times: Table<'t, (i64, &'static str), ()>,
}

impl<'t> Tables<'t> {
    pub fn open(transaction: &'t WriteTransaction) -> Result<Self, Fault> {
        Ok(Self {
            users: transaction.open_table(USERS)?,
            identities: transaction.open_table(IDENTITIES)?,
            requests: transaction.open_table(REQUESTS)?,
            request_times: transaction.open_table(REQUEST_TIMES)?,
        })
    }

    /// Carries out a mutation. The outer error is the store's, and ends the transaction; the inner one is the caller's.
    pub fn mutate(&mut self, mutation: &Mutation) -> Result<Result<Outcome, Error>, Fault> {
        let again = match self.repeated(mutation)? {
            Some(Ok(subject)) => Some(subject),
            Some(Err(refused)) => return Ok(Err(refused)),
            None => None,
        };
        let mut view = View::default();
        let mut needs =
            again.map_or_else(|| mutation.needs(), |subject| Needs { users: vec![subject], claims: vec![] });
        let effects = loop {
            self.read(needs, &mut view)?;
            let decision = match again {
                Some(subject) => mutation.decide_again(subject, &view),
                None => mutation.decide(&view),
            };
            match decision {
                Ok(Decision::Done(effects)) => break effects,
                Ok(Decision::Read(more)) => needs = more,
                Err(refused) => return Ok(Err(refused)),
            }
        };
        self.write(&effects)?;
        if let Some(request) = mutation.request.as_ref().filter(|_| again.is_none()) {
            self.remember(request, effects.subject, mutation.time)?;
        }
        Ok(Ok(effects.into_outcome()))
    }

    /// Adds to the view what the decision needs.
    fn read(&self, needs: Needs, view: &mut View) -> Result<(), Fault> {
        for id in needs.users {
            let record = self.users.get(id.as_bytes())?.map(|record| decode_user(record.value()));
            view.add_user(id, record.transpose()?);
        }
        for key in needs.claims {
            let claim = self.identities.get(key.as_str().as_bytes())?.map(|claim| decode_claim(claim.value()));
            view.add_claim(key, claim.transpose()?);
        }
        Ok(())
    }

    fn write(&mut self, effects: &Effects) -> Result<(), Fault> {
        for (key, write) in &effects.claims {
            let key = key.as_str().as_bytes();
            match write {
                ClaimWrite::Insert(claim) | ClaimWrite::Update(claim) => {
                    self.identities.insert(key, encode_claim(claim).as_slice())?
                }
                ClaimWrite::Delete => self.identities.remove(key)?,
            };
        }
        for record in &effects.users {
            self.users.insert(record.id().as_bytes(), encode_user(record).as_slice())?;
        }
        Ok(())
    }

    /// The user whom the answer to this very request was about, if it was carried out before.
    fn repeated(&self, mutation: &Mutation) -> Result<Option<Result<LocalityId, Error>>, Fault> {
        let Some(request) = &mutation.request else { return Ok(None) };
        let Some(record) = self.requests.get(request.key.as_str())? else { return Ok(None) };
        let record = RequestRecord::decode(record.value()).map_err(Fault::damaged)?;
        if record.time + Request::LIFETIME_MILLIS <= mutation.time.as_millis() {
            return Ok(None);
        }
        if record.fingerprint != request.fingerprint {
            return Ok(Some(Err(Error::RequestIdReused)));
        }
        let id: [u8; 16] = record.user_id.as_slice().try_into().map_err(Fault::damaged)?;
        Ok(Some(Ok(LocalityId::from(id))))
    }

    fn remember(&mut self, request: &Request, subject: LocalityId, time: Timestamp) -> Result<(), Fault> {
        let time = time.as_millis();
        let user_id = subject.as_bytes().to_vec();
        let record = RequestRecord { user_id, fingerprint: request.fingerprint, time }.encode_to_vec();
        self.requests.insert(request.key.as_str(), record.as_slice())?;
        self.request_times.insert((time, request.key.as_str()), ())?;
        Ok(())
    }

    /// Forgets requests whose time is over: a few for each mutation, so that forgetting keeps up and never takes long.
    pub fn forget_requests(&mut self, mutations: &[Mutation]) -> Result<(), Fault> {
        let Some(now) = mutations.iter().map(|mutation| mutation.time.as_millis()).max() else { return Ok(()) };
        for _ in 0..mutations.len() * 2 {
            let Some((time, key)) = self.oldest_request()? else { break };
            if time + Request::LIFETIME_MILLIS > now {
                break;
            }
            self.request_times.remove((time, key.as_str()))?;
            self.forget(time, &key)?;
        }
        Ok(())
    }

    fn oldest_request(&self) -> Result<Option<(i64, String)>, Fault> {
        let oldest = self.request_times.first()?;
        Ok(oldest.map(|(entry, _)| (entry.value().0, entry.value().1.to_owned())))
    }

    /// A request that was sent again after its time was over has a later record, which stays.
    fn forget(&mut self, time: i64, key: &str) -> Result<(), Fault> {
        let record = self.requests.get(key)?.map(|record| RequestRecord::decode(record.value()));
        if record.transpose().map_err(Fault::damaged)?.is_some_and(|record| record.time == time) {
            self.requests.remove(key)?;
        }
        Ok(())
    }
}
