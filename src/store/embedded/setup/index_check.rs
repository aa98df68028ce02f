//! The index of attributes as `store verify` sees it: which entries users should have, and which
//! entries are there.

use locality_uuid::LocalityId;
use redb::{Range, ReadableTableMetadata};

use super::error::Fault;
use super::index_key;
use super::read::{Snapshot, own};
use super::schema::StoredUser;
use super::search::AttributesTable;
use crate::directory::model::policies::Policies;
use crate::directory::model::tenant::Tenant;
use crate::store::integrity::IndexFault;

/// The entries of one user.
struct Entries {
    /// Those that it must have, in order.
    needed: Vec<Vec<u8>>,
    /// Those that it may have, in order: also those of attributes whose index is being changed.
    allowed: Vec<Vec<u8>>,
}

/// The check of an index: one item for each user, and for each entry where there are some that no
/// user has.
pub struct IndexCheck {
    snapshot: Snapshot,
    index: AttributesTable,
    users: Range<'static, &'static [u8; 16], &'static [u8]>,
    /// Those that are left to check, once all users were.
    entries: Option<Range<'static, &'static [u8], ()>>,
    /// Entries that users have.
    owned: u64,
    /// The policies of the tenant whose user was read last.
    policies: Option<(Tenant, Policies)>,
}

impl IndexCheck {
    /// The check of a store as it is; none where it has no index.
    pub fn new(mut snapshot: Snapshot) -> Result<Option<Self>, Fault> {
        let Some(index) = snapshot.attributes.take() else { return Ok(None) };
        let users = snapshot.users.range::<&[u8; 16]>(..)?;
        Ok(Some(Self { snapshot, index, users, entries: None, owned: 0, policies: None }))
    }

    /// The entries that a user must have and does not; none of a user who cannot be read.
    pub fn missing(&mut self, id: LocalityId) -> Result<Vec<Vec<u8>>, Fault> {
        let Some(record) = self.snapshot.users.get(id.as_bytes())? else { return Ok(Vec::new()) };
        let Some(entries) = self.entries_of(id, record.value())? else { return Ok(Vec::new()) };
        let mut missing = Vec::new();
        for entry in entries.needed {
            if self.index.get(entry.as_slice())?.is_none() {
                missing.push(entry);
            }
        }
        Ok(missing)
    }

    /// Whether the index has all entries of a user.
    fn check_user(&mut self, id: LocalityId, record: &[u8]) -> Result<bool, Fault> {
        let Some(entries) = self.entries_of(id, record)? else { return Ok(true) };
        let mut is_whole = true;
        for entry in &entries.allowed {
            if self.index.get(entry.as_slice())?.is_some() {
                self.owned += 1;
            } else {
                is_whole &= entries.needed.binary_search(entry).is_err();
            }
        }
        Ok(is_whole)
    }

    /// Whether an entry belongs to a user. Of one who cannot be read, nothing is known.
    fn is_owned(&mut self, entry: &[u8]) -> Result<bool, Fault> {
        let Some(id) = index_key::user(entry) else { return Ok(false) };
        let Some(record) = self.snapshot.users.get(id.as_bytes())? else { return Ok(false) };
        let entries = self.entries_of(id, record.value())?;
        let has = |entries: Entries| entries.allowed.iter().any(|own| own == entry);
        Ok(entries.is_none_or(has))
    }

    /// The entries of a user; none where it cannot be read, or is filed under another id.
    fn entries_of(&mut self, id: LocalityId, record: &[u8]) -> Result<Option<Entries>, Fault> {
        let read = |stored: StoredUser<'_>| {
            let names = self.snapshot.names_for(&stored)?;
            Ok((stored.decode(&names)?.user, names))
        };
        let Ok((user, names)) = own(StoredUser::read(record).and_then(read))? else {
            return Ok(None);
        };
        if user.id != id {
            return Ok(None);
        }

        let policies = match self.policies.take() {
            Some((tenant, policies)) if tenant == user.tenant => policies,
            _ => self.snapshot.tenant(&user.tenant)?.map(|own| own.policies).unwrap_or_default(),
        };
        let keys = |is_counted: &dyn Fn(&str) -> bool| {
            index_key::keys(&user, |name| names.token(name).filter(|_| is_counted(name)))
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
            let id = LocalityId::from(*id.value());
            let is_whole = self.check_user(id, record.value())?;
            return Ok(Some((!is_whole).then_some(IndexFault::Missing(id))));
        }
        if self.entries.is_none() && self.index.len()? > self.owned {
            self.entries = Some(self.index.range::<&[u8]>(..)?);
        }
        let Some(row) = self.entries.as_mut().and_then(Iterator::next) else { return Ok(None) };
        let entry = row?.0.value().to_vec();
        let is_owned = self.is_owned(&entry)?;
        Ok(Some((!is_owned).then(|| IndexFault::Stray(index_key::user(&entry), entry))))
    }
}
