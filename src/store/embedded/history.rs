//! Reads of the journal on a snapshot.

use locality_uuid::LocalityId;
use redb::{ReadOnlyTable, ReadTransaction};

use super::error::Fault;
use super::read::{Snapshot, optional};
use super::schema::{ENDED, EVENTS, StoredEvent, StoredUser};
use crate::directory::model::ownership::EndedOwnerships;
use crate::directory::model::tenant::Tenant;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::store::History;
use crate::identifier::IdentityKey;
use crate::store::integrity::Past;
use crate::wire::event::decode_ended;

/// The tables of the journal.
pub struct JournalSnapshot {
    events: ReadOnlyTable<u64, &'static [u8]>,
    ended: ReadOnlyTable<&'static [u8], &'static [u8]>,
}

impl JournalSnapshot {
    /// None in a store of a schema that has no journal.
    pub fn open(transaction: &ReadTransaction) -> Result<Option<Self>, Fault> {
        let events = optional(transaction.open_table(EVENTS))?;
        let ended = optional(transaction.open_table(ENDED))?;
        Ok(events.zip(ended).map(|(events, ended)| Self { events, ended }))
    }
}

impl Snapshot {
    /// See [`Store::history`](crate::directory::store::Store::history). A place is the number of an
    /// event.
    pub fn history(
        &self,
        tenant: &Tenant,
        id: LocalityId,
        place: Option<u64>,
        limit: usize,
    ) -> Result<Option<History>, Fault> {
        let Some(record) = self.users.get(id.as_bytes())? else { return Ok(None) };
        let stored = StoredUser::read(record.value())?;
        if stored.tenant()? != tenant.as_str() {
            return Ok(None);
        }
        let mut history = History { user: stored.basic(), events: Vec::new(), next: None };
        let Some(journal) = &self.journal else { return Ok(Some(history)) };
        let mut number = place.unwrap_or_else(|| stored.head().last);
        while let Some(row) = journal.events.get(number)? {
            if history.events.len() == limit {
                history.next = Some(number);
                break;
            }
            let event = StoredEvent::read(row.value())?;
            if event.user != id {
                return Err(Fault::damaged("an event of another user in a history"));
            }
            history.events.push(event.decode()?);
            number = event.previous;
        }
        Ok(Some(history))
    }

    /// A user with its history; none where it is not there, or the store has no journal.
    pub fn past(&self, id: LocalityId) -> Result<Option<Past>, Fault> {
        let Some(record) = self.users.get(id.as_bytes())?.filter(|_| self.journal.is_some()) else {
            return Ok(None);
        };
        let user = self.decode(&StoredUser::read(record.value())?)?.user;
        let history = self.history(&user.tenant, id, None, usize::MAX)?;
        let tenant = self.tenant(&user.tenant)?;
        let policies = tenant.map(|tenant| tenant.policies).unwrap_or_default();
        let begin = policies.history_begins(Timestamp::now());
        Ok(history.map(|history| Past { user, events: history.events, begin }))
    }

    /// All ended ownerships, by their keys.
    pub fn all_ended(
        self,
    ) -> Result<impl Iterator<Item = Result<(IdentityKey, EndedOwnerships), Fault>>, Fault> {
        let rows = self.journal.map(|journal| journal.ended.range::<&[u8]>(..)).transpose()?;
        Ok(rows.into_iter().flatten().map(|row| {
            let (key, ended) = row?;
            let key =
                String::from_utf8(key.value().to_vec()).ok().and_then(IdentityKey::from_stored);
            let key = key.ok_or_else(|| Fault::damaged("an ended ownership without a key"))?;
            Ok((key, decode_ended(ended.value()).map_err(Fault::damaged)?))
        }))
    }

    /// The ended ownerships of a key.
    pub fn ended(&self, key: &IdentityKey) -> Result<EndedOwnerships, Fault> {
        let Some(journal) = &self.journal else { return Ok(EndedOwnerships::default()) };
        let ended = journal.ended.get(key.as_str().as_bytes())?;
        let ended = ended.map(|ended| decode_ended(ended.value()));
        Ok(ended.transpose().map_err(Fault::damaged)?.unwrap_or_default())
    }
}
