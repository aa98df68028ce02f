//! A shorter retention of history: events that it does not keep are removed, and others get an
//! earlier date of removal. Those that are damaged keep their dates.

use redb::{ReadableTable, WriteTransaction};

use super::Embedded;
use super::error::Fault;
use super::journal::Journal;
use super::schema::{EVENT_TIMES, EVENTS, TENANT_EVENT_TIMES, TENANT_EVENTS};
use super::stored_event::StoredEvent;
use crate::directory::error::Error;
use crate::directory::model::shortening::{Shortened, Shortening};
use crate::directory::model::tenant::Tenant;
use crate::wire::tenant_event::decode_tenant_event;

/// The dates of one part: few, as mutations wait for it.
const MOST: usize = 1_000;

/// A part of shortening the history of a tenant.
struct ShorteningPart {
    tenant: Tenant,
    by: Shortening,
    /// The last date that was seen, and the number of its event.
    after: (i64, u64),
}

impl Embedded {
    /// See [`Store::shorten_history`](crate::directory::store::Store::shorten_history).
    pub(super) async fn shorten(
        &self,
        tenant: &Tenant,
        by: Shortening,
        place: Option<Vec<u8>>,
    ) -> Result<Shortened, Error> {
        if !self.on_snapshot(|snapshot| Ok(snapshot.has_journal()))? {
            return Ok(Shortened::default());
        }
        let after = place.as_deref().and_then(read_place).unwrap_or((i64::MIN, 0));
        let part = ShorteningPart { tenant: tenant.clone(), by, after };
        let next = self.write_aside(move |transaction| shorten(transaction, &part)).await?;
        Ok(Shortened { next, users: Vec::new() })
    }
}

/// Carries out a part. Returns the place after it; none at the end.
fn shorten(
    transaction: &WriteTransaction,
    part: &ShorteningPart,
) -> Result<Option<Vec<u8>>, Fault> {
    let (mut later, mut last) = (Vec::new(), None);
    {
        let (times, events) =
            (transaction.open_table(EVENT_TIMES)?, transaction.open_table(EVENTS)?);
        let (expiry, number) = part.after;
        for entry in times.range((expiry, number.saturating_add(1))..)?.take(MOST) {
            let (expiry, number) = entry?.0.value();
            last = Some(place(expiry, number));
            let Some(row) = events.get(number)? else { continue };
            let Ok(row) = StoredEvent::read(row.value()) else { continue };
            if row.tenant() == part.tenant.as_str()
                && let Ok(event) = row.decode()
            {
                let removal = part.by.removal(event.time);
                later.extend((removal.as_millis() < expiry).then_some((expiry, number, removal)));
            }
        }
    }
    let mut journal = Journal::open(transaction)?;
    for (expiry, number, removal) in later {
        journal.remove_earlier((expiry, number), removal, part.by.now)?;
    }
    if last.is_none() {
        shorten_tenant_events(transaction, part)?;
    }
    Ok(last)
}

/// The same for the events of the tenant itself, of which there are few.
fn shorten_tenant_events(
    transaction: &WriteTransaction,
    part: &ShorteningPart,
) -> Result<(), Fault> {
    let mut events = transaction.open_table(TENANT_EVENTS)?;
    let mut times = transaction.open_table(TENANT_EVENT_TIMES)?;
    let name = part.tenant.as_str();
    let mut over = Vec::new();
    for row in events.range((name, 0)..=(name, u64::MAX))? {
        let (key, row) = row?;
        let number = key.value().1;
        let Ok(event) = decode_tenant_event(number, row.value()) else { continue };
        let removal = part.by.removal(event.time);
        if removal <= part.by.now {
            over.push(number);
        } else {
            // The later date stays, and is of no event then.
            times.insert((removal.as_millis(), name, number), ())?;
        }
    }
    for number in over {
        events.remove((name, number))?;
    }
    Ok(())
}

fn place(expiry: i64, number: u64) -> Vec<u8> {
    [expiry.to_be_bytes(), number.to_be_bytes()].concat()
}

fn read_place(place: &[u8]) -> Option<(i64, u64)> {
    let (expiry, number) = place.split_first_chunk()?;
    Some((i64::from_be_bytes(*expiry), u64::from_be_bytes(number.try_into().ok()?)))
}
