//! The requests that took effect. A request that is sent again takes effect once.

use locality_uuid::LocalityId;
use prost::Message;
use redb::{ReadableTable, Table, WriteTransaction};

use crate::error::Fault;
use crate::schema::tables::{REQUEST_TIMES, REQUESTS};
use polynym_directory::{Error, IdempotencyKey, PriorRequest, Timestamp};

/// A row of [`REQUESTS`].
#[derive(Clone, PartialEq, Message)]
pub struct RequestRecord {
    #[prost(bytes = "vec", tag = "1")]
    pub user_id: Vec<u8>,
    #[prost(fixed64, tag = "2")]
    pub request_hash: u64,
    /// Milliseconds since the Unix epoch.
    #[prost(int64, tag = "3")]
    pub time: i64,
    /// The time when the tenant was created, in the same form. Absent if that does not matter.
    #[prost(int64, optional, tag = "4")]
    pub tenant_since: Option<i64>,
}

/// The requests inside one write transaction.
pub struct Requests<'t> {
    records: Table<'t, &'static str, &'static [u8]>,
    times: Table<'t, (i64, &'static str), ()>,
}

impl<'t> Requests<'t> {
    pub fn open(transaction: &'t WriteTransaction) -> Result<Self, Fault> {
        Ok(Self {
            records: transaction.open_table(REQUESTS)?,
            times: transaction.open_table(REQUEST_TIMES)?,
        })
    }

    /// This request, if it took effect and is not void by its time and the creation of its tenant.
    /// The inner error is the caller's: the id belongs to another request.
    pub fn prior(
        &self,
        request: &IdempotencyKey,
        is_void: impl FnOnce(Timestamp, Option<Timestamp>) -> bool,
    ) -> Result<Option<Result<PriorRequest, Error>>, Fault> {
        let stored = self.record(&request.key)?;
        let counts = |record: &RequestRecord| !is_void(record.time(), record.tenant_created());
        let Some(stored) = stored.filter(counts) else { return Ok(None) };
        if stored.request_hash != request.request_hash {
            return Ok(Some(Err(Error::RequestIdReused)));
        }
        let id: [u8; 16] = stored.user_id.as_slice().try_into().map_err(Fault::damaged)?;
        let subject = IdempotencyKey::subject(id.into());
        let (time, tenant_since) = (stored.time(), stored.tenant_created());
        Ok(Some(Ok(PriorRequest { time, subject, tenant_since })))
    }

    /// Remembers that a request took effect.
    pub fn remember(
        &mut self,
        request: &IdempotencyKey,
        subject: LocalityId,
        time: Timestamp,
        tenant_since: Option<Timestamp>,
    ) -> Result<(), Fault> {
        let (key, user_id) = (request.key.as_str(), subject.as_bytes().to_vec());
        let (request_hash, time) = (request.request_hash, time.as_millis());
        let tenant_since = tenant_since.map(Timestamp::as_millis);
        let record = RequestRecord { user_id, request_hash, time, tenant_since }.encode_to_vec();
        self.records.insert(key, record.as_slice())?;
        self.times.insert((time, key), ())?;
        Ok(())
    }

    /// Removes the oldest request if it has expired. Returns whether it had. The record of a
    /// request that took effect again later stays.
    pub fn sweep(&mut self, now: Timestamp) -> Result<bool, Fault> {
        let oldest = self.times.first()?.map(|(entry, _)| {
            let (time, key) = entry.value();
            (Timestamp::from_millis(time), key.to_owned())
        });
        let Some((time, key)) = oldest else { return Ok(false) };
        if time.plus(IdempotencyKey::LIFETIME) > now {
            return Ok(false);
        }

        self.times.remove((time.as_millis(), key.as_str()))?;
        if self.record(&key)?.is_some_and(|record| record.time() == time) {
            self.records.remove(key.as_str())?;
        }
        Ok(true)
    }

    fn record(&self, key: &str) -> Result<Option<RequestRecord>, Fault> {
        let record = self.records.get(key)?.map(|record| RequestRecord::decode(record.value()));
        record.transpose().map_err(Fault::damaged)
    }
}

impl RequestRecord {
    const fn time(&self) -> Timestamp {
        Timestamp::from_millis(self.time)
    }

    fn tenant_created(&self) -> Option<Timestamp> {
        self.tenant_since.map(Timestamp::from_millis)
    }
}
