//! The requests that were carried out, so that one that is sent again takes effect once.

use locality_uuid::LocalityId;
use prost::Message;
use redb::ReadableTable;

use super::error::Fault;
use super::schema::RequestRecord;
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
        let Some(record) = self.requests.get(request.key.as_str())? else { return Ok(None) };
        let record = RequestRecord::decode(record.value()).map_err(Fault::damaged)?;
        if mutation.forgets(Timestamp::from_millis(record.time)) {
            return Ok(None);
        }

        if record.request_hash != request.request_hash {
            return Ok(Some(Err(Error::RequestIdReused)));
        }
        let id: [u8; 16] = record.user_id.as_slice().try_into().map_err(Fault::damaged)?;
        Ok(Some(Ok(IdempotencyKey::subject(id.into()))))
    }

    /// Remembers that a request was carried out.
    pub(super) fn remember(
        &mut self,
        request: &IdempotencyKey,
        subject: Option<LocalityId>,
        time: Timestamp,
    ) -> Result<(), Fault> {
        let time = time.as_millis();
        let user_id = IdempotencyKey::stored_subject(subject).as_bytes().to_vec();
        let record =
            RequestRecord { user_id, request_hash: request.request_hash, time }.encode_to_vec();
        self.requests.insert(request.key.as_str(), record.as_slice())?;
        self.request_times.insert((time, request.key.as_str()), ())?;
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
