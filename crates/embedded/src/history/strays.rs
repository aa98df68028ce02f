//! The removal of events whose users are gone. A purge follows a history from its end: behind a
//! damaged event it leaves the others.

use redb::{ReadableTable, WriteTransaction};

use crate::error::Fault;
use crate::history::journal::Journal;
use crate::lookup::snapshot::Snapshot;
use crate::schema::event::StoredEvent;
use crate::schema::tables::USERS;
use crate::store::Embedded;
use polynym_directory::Error;

/// The events of one part.
const PART_EVENTS: usize = 2_000;

impl Embedded {
    /// See [`Histories::remove_strays`](polynym_directory::stores::Histories::remove_strays). A
    /// position is the number of an event.
    pub(crate) async fn remove_stray_events(
        &self,
        after: Option<u64>,
    ) -> Result<Option<u64>, Error> {
        let part = self.read_step(|snapshot| snapshot.stray_events(after))?;
        if !part.strays.is_empty() {
            let (events, strays) = (part.strays.len(), part.strays);
            self.write_step(move |transaction| remove(transaction, &strays)).await?;
            tracing::info!(events, "removed events of users that are gone");
        }
        Ok(part.last)
    }
}

/// The strays among some events.
#[derive(Default)]
struct Part {
    strays: Vec<u64>,
    /// The number of the last event; `None` if there are no more.
    last: Option<u64>,
}

impl Snapshot {
    fn stray_events(&self, after: Option<u64>) -> Result<Part, Fault> {
        let mut part = Part::default();
        let first = after.map_or(0, |after| after.saturating_add(1));
        for row in self.event_rows(first)?.take(PART_EVENTS) {
            let (number, row) = row?;
            part.last = Some(number);
            // A damaged event has no user: it stays.
            let Ok(row) = StoredEvent::read(row.value()) else { continue };
            if self.users.get(row.user.as_bytes())?.is_none() {
                part.strays.push(number);
            }
        }
        Ok(part)
    }
}

/// Removes events, unless their users have come back by an import.
fn remove(transaction: &WriteTransaction, strays: &[u64]) -> Result<(), Fault> {
    let users = transaction.open_table(USERS)?;
    let mut journal = Journal::open(transaction)?;
    for number in strays {
        let Some(user) = journal.user_of(*number)? else { continue };
        if users.get(user.as_bytes())?.is_none() {
            journal.forget_stray(*number, user)?;
        }
    }
    Ok(())
}
