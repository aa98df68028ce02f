//! The requests that were carried out, so that one that is sent again takes effect once.

use locality_uuid::LocalityId;
use prost::Message;
use redb::{ReadableTable, WriteTransaction};

use super::error::Fault;
use super::schema::{REQUEST_TIMES, REQUESTS, RequestRecord};
use super::transaction::Tables;
use crate::directory::error::Error;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::mutation::{IdempotencyKey, Mutation};

impl Tables<'_> {
    /// The subject of this very request, if it was carried out before.
    pub(super) fn repeated(
        &self,
        mutation: &Mutation,
    ) -> Result<Option<Result<Option<LocalityId>, Error>>, Fault> {
        let Some(request) = &mutation.request else { return Ok(None) };
        let stored = self.requests.get(request.key.as_str())?;
        let stored = stored.map(|record| RequestRecord::decode(record.value())).transpose();
        let stored = stored.map_err(Fault::damaged)?;
        let repeated = repeated(request, stored, |time| mutation.forgets(time))?;
        Ok(repeated.map(|stored| stored.map(IdempotencyKey::subject)))
    }

    /// Remembers that a request was carried out.
    pub(super) fn remember(
        &mut self,
        request: &IdempotencyKey,
        subject: Option<LocalityId>,
        time: Timestamp,
    ) -> Result<(), Fault> {
        let record = record(request, IdempotencyKey::stored_subject(subject), time);
        self.requests.insert(request.key.as_str(), record.as_slice())?;
        self.request_times.insert((time.as_millis(), request.key.as_str()), ())?;
        Ok(())
    }

    /// Whether there was a request whose time is over. One that was sent again after that has a
    /// later record, which stays.
    pub(super) fn forget_request(&mut self, now: i64) -> Result<bool, Fault> {
        let oldest = self.request_times.first()?;
        let Some((time, key)) =
            oldest.map(|(entry, _)| (entry.value().0, entry.value().1.to_owned()))
        else {
            return Ok(false);
        };
        if Timestamp::from_millis(time).plus(IdempotencyKey::LIFETIME).as_millis() > now {
            return Ok(false);
        }

        self.request_times.remove((time, key.as_str()))?;
        let record =
            self.requests.get(key.as_str())?.map(|record| RequestRecord::decode(record.value()));
        if record.transpose().map_err(Fault::damaged)?.is_some_and(|record| record.time == time) {
            self.requests.remove(key.as_str())?;
        }

        Ok(true)
    }
}

/// The notice that this very request sends, if it was made before.
pub fn begun_notice(
    transaction: &WriteTransaction,
    request: &IdempotencyKey,
    now: Timestamp,
) -> Result<Option<Result<LocalityId, Error>>, Fault> {
    let requests = transaction.open_table(REQUESTS)?;
    let stored = requests.get(request.key.as_str())?;
    let stored = stored.map(|record| RequestRecord::decode(record.value())).transpose();
    let is_over = |time: Timestamp| time.plus(IdempotencyKey::LIFETIME) <= now;
    repeated(request, stored.map_err(Fault::damaged)?, is_over)
}

/// Remembers the notice that a request sends.
pub fn begin_notice(
    transaction: &WriteTransaction,
    request: &IdempotencyKey,
    notice: LocalityId,
    time: Timestamp,
) -> Result<(), Fault> {
    let record = record(request, notice, time);
    transaction.open_table(REQUESTS)?.insert(request.key.as_str(), record.as_slice())?;
    let entry = (time.as_millis(), request.key.as_str());
    transaction.open_table(REQUEST_TIMES)?.insert(entry, ())?;
    Ok(())
}

/// The subject of a request that was carried out before, from its record.
fn repeated(
    request: &IdempotencyKey,
    stored: Option<RequestRecord>,
    is_over: impl FnOnce(Timestamp) -> bool,
) -> Result<Option<Result<LocalityId, Error>>, Fault> {
    let Some(stored) = stored.filter(|stored| !is_over(Timestamp::from_millis(stored.time))) else {
        return Ok(None);
    };
    if stored.request_hash != request.request_hash {
        return Ok(Some(Err(Error::RequestIdReused)));
    }
    let id: [u8; 16] = stored.user_id.as_slice().try_into().map_err(Fault::damaged)?;
    Ok(Some(Ok(id.into())))
}

fn record(request: &IdempotencyKey, subject: LocalityId, time: Timestamp) -> Vec<u8> {
    let (user_id, request_hash) = (subject.as_bytes().to_vec(), request.request_hash);
    RequestRecord { user_id, request_hash, time: time.as_millis() }.encode_to_vec()
}
