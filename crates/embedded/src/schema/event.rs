//! Rows of events.

use locality_uuid::LocalityId;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::Fault;
use polynym_directory::{
    Event, Tenant, encoded::event::decode_event, encoded::event::encode_event,
    encoded::event::time_of,
};

/// A row of [`EVENTS`](super::tables::EVENTS): 8 bytes of the number of the same user's previous
/// event (0 for none), big-endian; 16 of the user's id; one of the length of the tenant's name; the
/// name; and the rest of the event, in the form of the API.
pub struct StoredEvent<'r> {
    /// The number of the user's previous event.
    pub previous: u64,
    /// The user.
    pub user: LocalityId,
    tenant: &'r str,
    event: &'r [u8],
}

impl<'r> StoredEvent<'r> {
    pub fn read(row: &'r [u8]) -> Result<Self, Fault> {
        let fault = || Fault::damaged("an event that is too short");
        let (previous, rest) = row.split_first_chunk().ok_or_else(fault)?;
        let (user, rest) = rest.split_first_chunk::<16>().ok_or_else(fault)?;
        let (length, rest) = rest.split_first().ok_or_else(fault)?;
        let (tenant, event) = rest.split_at_checked((*length).into()).ok_or_else(fault)?;
        Ok(Self {
            previous: u64::from_be_bytes(*previous),
            user: LocalityId::from(*user),
            tenant: std::str::from_utf8(tenant).map_err(Fault::damaged)?,
            event,
        })
    }

    /// A hash of the parts of a row that redaction leaves alone: the number of the previous event,
    /// the user, the sequence number and the time.
    pub fn fingerprint(&self, event: &Event) -> u64 {
        let mut stable = self.previous.to_be_bytes().to_vec();
        stable.extend(self.user.as_bytes());
        stable.extend(event.sequence.to_be_bytes());
        stable.extend(event.time.as_millis().to_be_bytes());
        xxh3_64(&stable)
    }

    /// The name of the tenant.
    pub const fn tenant(&self) -> &'r str {
        self.tenant
    }

    /// The place of the event with this number among those of its tenant.
    pub fn place(&self, number: u64) -> Result<(&'r str, i64, u64), Fault> {
        let time = time_of(self.event).map_err(Fault::damaged)?;
        Ok((self.tenant, time.as_millis(), number))
    }

    pub fn decode(&self) -> Result<Event, Fault> {
        let tenant = Tenant::parse(self.tenant).map_err(Fault::damaged)?;
        decode_event(&tenant, self.user, self.event).map_err(Fault::damaged)
    }
}

/// The row of an event.
pub fn encode_event_row(previous: u64, event: &Event) -> Vec<u8> {
    let tenant = event.tenant.as_str().as_bytes();
    let mut row = previous.to_be_bytes().to_vec();
    row.extend(event.user.as_bytes());
    row.push(tenant.len() as u8);
    row.extend(tenant);
    row.extend(encode_event(event));
    row
}
