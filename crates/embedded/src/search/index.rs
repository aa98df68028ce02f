//! The names and the index of attributes inside one write transaction.

use std::sync::Arc;

use redb::{Table, WriteTransaction};

use crate::error::Fault;
use crate::schema::index_key;
use crate::schema::tables::{ATTRIBUTE_NAMES, ATTRIBUTES};
use crate::schema::user::StoredUser;
use crate::search::names::Names;
use polynym_directory::{Policies, Record};
use polynym_store_common::attribute_names::{AttributeId, AttributeNames, KnownNames};
use polynym_store_common::searched::IndexedAttributes;

/// The names and the index of attributes.
pub struct Attributes<'t> {
    pub names: Names<'t>,
    index: Table<'t, &'static [u8], ()>,
}

impl<'t> Attributes<'t> {
    pub fn open(
        transaction: &'t WriteTransaction,
        names: &'t AttributeNames,
    ) -> Result<Self, Fault> {
        Ok(Self {
            names: Names::new(transaction.open_table(ATTRIBUTE_NAMES)?, names),
            index: transaction.open_table(ATTRIBUTES)?,
        })
    }

    /// The names of a stored user's attributes.
    pub fn names_for(&mut self, stored: &StoredUser<'_>) -> Result<Arc<KnownNames>, Fault> {
        let tenant = stored.tenant()?;
        stored.names(self.names.known(tenant), || self.names.all(tenant))
    }

    /// Updates the entries of a user in the index. The tenant's definitions may have changed since
    /// the user was indexed last: all entries that it may have had are removed, and during a change
    /// all that it must have are added.
    pub fn index(
        &mut self,
        before: Option<&Record>,
        after: Option<&Record>,
        policies: &Policies,
    ) -> Result<(), Fault> {
        let Some(record) = before.or(after) else { return Ok(()) };
        let names = self.names.known(record.user.tenant.as_str());
        let indexed = IndexedAttributes { names: &names, policies };
        let keys = |record: &Record, id_of: &dyn Fn(&str) -> Option<AttributeId>| {
            index_key::keys(&record.user, id_of)
        };
        let possible = |record: &Record| keys(record, &|name| names.id(name));
        let required = |record: &Record| keys(record, &|name| indexed.id(name));
        let old = before.map(possible).unwrap_or_default();
        let new = after.map(required).unwrap_or_default();
        let is_changing = policies.index_change().is_some();
        for key in old.iter().filter(|key| new.binary_search(key).is_err()) {
            self.index.remove(key.as_slice())?;
        }
        let is_new = |key: &&Vec<u8>| is_changing || old.binary_search(key).is_err();
        for key in new.iter().filter(is_new) {
            self.index.insert(key.as_slice(), ())?;
        }
        Ok(())
    }
}
