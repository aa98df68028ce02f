//! The tables inside one write transaction, and how a mutation changes them. Every check of a mutation comes before its
//! first write, so that a mutation that is refused leaves nothing behind for the others of its group.

use prost::Message;
use redb::{ReadableTable, Table, WriteTransaction};

use super::error::Fault;
use super::schema::{Claim, IDENTITIES, REQUEST_TIMES, REQUESTS, RequestRecord, USERS, decode_user, encode_user};
use crate::directory::{ClaimChanges, Error, Mutation, Request, User, claim_changes};
use crate::identifier::{IdentityKey, RULES_VERSION};
use crate::locality::LocalityId;

pub struct Tables<'t> {
    users: Table<'t, &'static [u8; 16], &'static [u8]>,
    identities: Table<'t, &'static [u8], &'static [u8; Claim::BYTES]>,
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

    /// Applies a mutation. The outer error is the store's, and ends the transaction; the inner one is the caller's.
    pub fn mutate(&mut self, mutation: &Mutation) -> Result<Result<User, Error>, Fault> {
        if let Some(outcome) = self.repeated(mutation)? {
            return Ok(outcome);
        }
        let before = self.user(mutation.user_id)?;
        let after = match mutation.apply(before.as_ref()) {
            Ok(after) => after,
            Err(error) => return Ok(Err(error)),
        };
        let claims = claim_changes(before.as_ref(), &after);
        for key in &claims.taken {
            if let Some(owner) = self.owner(key)? {
                return Ok(Err(mutation.taken(key, owner)));
            }
        }
        if before.as_ref() != Some(&after) {
            self.write(&after, &claims)?;
        }
        if let Some(request) = &mutation.request {
            self.remember(request, mutation)?;
        }
        Ok(Ok(after))
    }

    fn user(&self, id: LocalityId) -> Result<Option<User>, Fault> {
        let record = self.users.get(id.as_bytes())?;
        record.map(|record| decode_user(record.value())).transpose()
    }

    fn owner(&self, key: &IdentityKey) -> Result<Option<LocalityId>, Fault> {
        Ok(self.identities.get(key.as_str().as_bytes())?.map(|claim| Claim::owner(claim.value())))
    }

    fn write(&mut self, user: &User, claims: &ClaimChanges) -> Result<(), Fault> {
        for key in &claims.released {
            self.identities.remove(key.as_str().as_bytes())?;
        }
        for key in &claims.taken {
            self.identities.insert(key.as_str().as_bytes(), &Claim::encode(user.id, RULES_VERSION))?;
        }
        self.users.insert(user.id.as_bytes(), encode_user(user).as_slice())?;
        Ok(())
    }

    /// The answer to a mutation whose request was answered before.
    fn repeated(&self, mutation: &Mutation) -> Result<Option<Result<User, Error>>, Fault> {
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
        Ok(Some(self.user(LocalityId::from(id))?.ok_or(Error::UserNotFound)))
    }

    fn remember(&mut self, request: &Request, mutation: &Mutation) -> Result<(), Fault> {
        let time = mutation.time.as_millis();
        let user_id = mutation.user_id.as_bytes().to_vec();
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
