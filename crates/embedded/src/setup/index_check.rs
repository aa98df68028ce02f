//! The check of the index of attributes, and of the order of events: compares the entries that
//! users should have with the entries that exist.

use locality_uuid::LocalityId;
use redb::{Range, ReadableTableMetadata, WriteTransaction};

use crate::error::Fault;
use crate::lookup::snapshot::{Snapshot, item_result};
use crate::schema::event::StoredEvent;
use crate::schema::index_key;
use crate::schema::tables::{ATTRIBUTES, EVENT_ORDER};
use crate::schema::user::StoredUser;
use crate::setup::scoped::{UserRecords, user_records};
use polynym_directory::{Policies, Tenant};
use polynym_store_common::integrity::{IndexFault, Scope};

/// The entries of one user.
struct Entries {
    /// The entries that it must have, sorted.
    needed: Vec<Vec<u8>>,
    /// The entries that it may have, sorted: includes attributes whose index is being changed.
    allowed: Vec<Vec<u8>>,
}

/// The check of an index: one item for each user, then, if the part is the whole store, one for
/// each entry if some belong to no user.
pub struct IndexCheck {
    snapshot: Snapshot,
    users: UserRecords,
    is_whole: bool,
    /// The entries left to check, after all users.
    entries: Option<Range<'static, &'static [u8], ()>>,
    /// The number of entries that users have.
    owned: u64,
    /// The policies of the last user's tenant.
    policies: Option<(Tenant, Policies)>,
}

impl IndexCheck {
    /// The check of a part of a store.
    pub fn new(snapshot: Snapshot, scope: &Scope) -> Result<Self, Fault> {
        let (users, is_whole) = (user_records(&snapshot.transaction, scope)?, scope.is_whole());
        Ok(Self { snapshot, users, is_whole, entries: None, owned: 0, policies: None })
    }

    /// Adds missing entries and places, and deletes stray entries.
    pub fn repair(
        &mut self,
        transaction: &WriteTransaction,
        faults: &[IndexFault],
    ) -> Result<(), Fault> {
        let mut index = transaction.open_table(ATTRIBUTES)?;
        let mut order = transaction.open_table(EVENT_ORDER)?;
        for fault in faults {
            match fault {
                IndexFault::Stray(_, entry) => drop(index.remove(entry.as_slice())?),
                IndexFault::Missing(user) => {
                    for entry in self.missing(*user)? {
                        index.insert(entry.as_slice(), ())?;
                    }
                    for (tenant, time, number) in self.unplaced(*user)? {
                        order.insert((&*tenant, time, number), ())?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The entries that a user lacks. Empty for a user that cannot be read.
    fn missing(&mut self, id: LocalityId) -> Result<Vec<Vec<u8>>, Fault> {
        let Some(record) = self.snapshot.users.get(id.as_bytes())? else { return Ok(Vec::new()) };
        let Some(entries) = self.entries_of(id, record.value())? else { return Ok(Vec::new()) };
        let mut missing = Vec::new();
        for entry in entries.needed {
            if self.snapshot.attributes.get(entry.as_slice())?.is_none() {
                missing.push(entry);
            }
        }
        Ok(missing)
    }

    /// The events of a user that have no place among those of their tenant, by tenant, time and
    /// number. Those behind one that cannot be read are another fault.
    fn unplaced(&self, id: LocalityId) -> Result<Vec<(String, i64, u64)>, Fault> {
        let Some(record) = self.snapshot.users.get(id.as_bytes())? else { return Ok(Vec::new()) };
        let head = item_result(StoredUser::read(record.value()).map(|stored| stored.head()))?;
        let (mut unplaced, mut number) = (Vec::new(), head.unwrap_or_default().last);
        while let Some(row) = self.snapshot.journal.events.get(number)? {
            let row = row.value();
            let read = StoredEvent::read(row).and_then(|event| Ok((event.place(number)?, event)));
            let Ok((place, event)) = item_result(read)? else { break };
            if event.user != id || event.previous >= number {
                break;
            }
            if self.snapshot.journal.order.get(place)?.is_none() {
                unplaced.push((place.0.to_owned(), place.1, place.2));
            }
            number = event.previous;
        }
        Ok(unplaced)
    }

    /// Whether the index has all entries of a user.
    fn check_user(&mut self, id: LocalityId, record: &[u8]) -> Result<bool, Fault> {
        let Some(entries) = self.entries_of(id, record)? else { return Ok(true) };
        let mut is_complete = true;
        for entry in &entries.allowed {
            if self.snapshot.attributes.get(entry.as_slice())?.is_some() {
                self.owned += 1;
            } else {
                is_complete &= entries.needed.binary_search(entry).is_err();
            }
        }
        Ok(is_complete)
    }

    /// Whether an entry belongs to a user. Entries of users that cannot be read count as theirs.
    fn is_owned(&mut self, entry: &[u8]) -> Result<bool, Fault> {
        let Some(id) = index_key::user(entry) else { return Ok(false) };
        let Some(record) = self.snapshot.users.get(id.as_bytes())? else { return Ok(false) };
        let entries = self.entries_of(id, record.value())?;
        let has = |entries: Entries| entries.allowed.iter().any(|known| known == entry);
        Ok(entries.is_none_or(has))
    }

    /// The entries of a user. None if it cannot be read, or is stored under another id.
    fn entries_of(&mut self, id: LocalityId, record: &[u8]) -> Result<Option<Entries>, Fault> {
        let read = |stored: StoredUser<'_>| {
            let names = self.snapshot.names_for(&stored)?;
            Ok((stored.decode(&names)?.user, names))
        };
        let Ok((user, names)) = item_result(StoredUser::read(record).and_then(read))? else {
            return Ok(None);
        };
        if user.id != id {
            return Ok(None);
        }

        let policies = match self.policies.take() {
            Some((tenant, policies)) if tenant == user.tenant => policies,
            _ => self
                .snapshot
                .tenant(&user.tenant)?
                .map(|tenant| tenant.policies)
                .unwrap_or_default(),
        };
        let keys = |is_counted: &dyn Fn(&str) -> bool| {
            index_key::keys(&user, |name| names.id(name).filter(|_| is_counted(name)))
        };
        let is_changing = |name: &str| policies.is_index_changing(name);
        let needed = keys(&|name| policies.indexes(name) && !is_changing(name));
        let allowed = keys(&|name| policies.indexes(name) || is_changing(name));
        self.policies = Some((user.tenant.clone(), policies));
        Ok(Some(Entries { needed, allowed }))
    }
}

impl Iterator for IndexCheck {
    type Item = Result<Option<IndexFault>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

impl IndexCheck {
    fn step(&mut self) -> Result<Option<Option<IndexFault>>, Fault> {
        if let Some(row) = self.users.next() {
            let (id, record) = row?;
            let is_complete = self.check_user(id, record.value())? && self.unplaced(id)?.is_empty();
            return Ok(Some((!is_complete).then_some(IndexFault::Missing(id))));
        }
        if !self.is_whole {
            return Ok(None);
        }
        if self.entries.is_none() && self.snapshot.attributes.len()? > self.owned {
            self.entries = Some(self.snapshot.attributes.range::<&[u8]>(..)?);
        }
        let Some(row) = self.entries.as_mut().and_then(Iterator::next) else { return Ok(None) };
        let entry = row?.0.value().to_vec();
        let is_owned = self.is_owned(&entry)?;
        Ok(Some((!is_owned).then(|| IndexFault::Stray(index_key::user(&entry), entry))))
    }
}
