//! A shorter retention of history: events get an earlier expiry, and those that have expired are
//! removed. Damaged events keep their expiry.

use redb::{ReadableTable, WriteTransaction};

use crate::error::Fault;
use crate::history::journal::Journal;
use crate::schema::event::StoredEvent;
use crate::schema::tables::{EVENT_TIMES, EVENTS, TENANT_EVENT_TIMES, TENANT_EVENTS};
use crate::store::Embedded;
use polynym_directory::{
    Error, Shortened, Shortening, Tenant, encoded::tenant_event::decode_tenant_event,
};
use polynym_store_common::operations::Operation;

/// The most events of one part: few, because mutations wait for it.
const PART_EVENTS: usize = 1_000;

/// A part of shortening the history of a tenant.
struct ShorteningPart {
    tenant: Tenant,
    by: Shortening,
    /// The expiry and the number of the last event of the previous part.
    after: (i64, u64),
}

impl Embedded {
    /// See [`Histories::shorten_history`](polynym_directory::stores::Histories::shorten_history).
    pub(crate) async fn shorten(
        &self,
        tenant: &Tenant,
        by: Shortening,
        place: Option<Vec<u8>>,
    ) -> Result<Shortened, Error> {
        let after = place.as_deref().and_then(decode_cursor).unwrap_or((i64::MIN, 0));
        let part = ShorteningPart { tenant: tenant.clone(), by, after };
        let next = self
            .write_aside(Operation::Scan, move |transaction| shorten(transaction, &part))
            .await?;
        Ok(Shortened { next, users: Vec::new() })
    }
}

/// Shortens one part. Returns the cursor of the next part, or none at the end.
fn shorten(
    transaction: &WriteTransaction,
    part: &ShorteningPart,
) -> Result<Option<Vec<u8>>, Fault> {
    let (mut shortened, mut last) = (Vec::new(), None);
    {
        let (times, events) =
            (transaction.open_table(EVENT_TIMES)?, transaction.open_table(EVENTS)?);
        let (expiry, number) = part.after;
        for entry in times.range((expiry, number.saturating_add(1))..)?.take(PART_EVENTS) {
            let (expiry, number) = entry?.0.value();
            last = Some(encode_cursor(expiry, number));
            let Some(row) = events.get(number)? else { continue };
            let Ok(row) = StoredEvent::read(row.value()) else { continue };
            if row.tenant() == part.tenant.as_str()
                && let Ok(event) = row.decode()
                && part.by.covers(event.time)
            {
                let earlier = part.by.removal(event.time);
                shortened
                    .extend((earlier.as_millis() < expiry).then_some((expiry, number, earlier)));
            }
        }
    }
    let mut journal = Journal::open(transaction)?;
    for (expiry, number, earlier) in shortened {
        journal.expire_earlier((expiry, number), earlier)?;
    }
    let mut steps = 0;
    while journal.sweep(part.by.now)? {
        steps += 1;
        if steps == PART_EVENTS {
            // The next part continues here.
            let (expiry, number) = part.after;
            return Ok(last.or_else(|| Some(encode_cursor(expiry, number))));
        }
    }
    if last.is_none() {
        shorten_tenant_events(transaction, part)?;
    }
    Ok(last)
}

/// Shortens the history of the tenant itself, which has few events.
fn shorten_tenant_events(
    transaction: &WriteTransaction,
    part: &ShorteningPart,
) -> Result<(), Fault> {
    let mut events = transaction.open_table(TENANT_EVENTS)?;
    let mut times = transaction.open_table(TENANT_EVENT_TIMES)?;
    let name = part.tenant.as_str();
    let mut expired = Vec::new();
    for row in events.range((name, 0)..=(name, u64::MAX))? {
        let (key, row) = row?;
        let number = key.value().1;
        let event = decode_tenant_event(number, row.value()).ok();
        let Some(event) = event.filter(|event| part.by.covers(event.time)) else { continue };
        let earlier = part.by.removal(event.time);
        if earlier <= part.by.now {
            expired.push(number);
        } else {
            // The later expiry stays, and will find no event.
            times.insert((earlier.as_millis(), name, number), ())?;
        }
    }
    for number in expired {
        events.remove((name, number))?;
    }
    Ok(())
}

fn encode_cursor(expiry: i64, number: u64) -> Vec<u8> {
    [expiry.to_be_bytes(), number.to_be_bytes()].concat()
}

fn decode_cursor(cursor: &[u8]) -> Option<(i64, u64)> {
    let (expiry, number) = cursor.split_first_chunk()?;
    Some((i64::from_be_bytes(*expiry), u64::from_be_bytes(number.try_into().ok()?)))
}
