//! The names and the index of attributes inside one write transaction.

use std::sync::Arc;

use redb::{Table, WriteTransaction};

use super::error::Fault;
use super::index_key;
use super::names::Names;
use super::schema::{ATTRIBUTE_NAMES, ATTRIBUTES, StoredUser};
use crate::directory::model::record::Record;
use crate::store::attribute_names::{AttributeNames, KnownNames};

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
        let known = self.names.known(tenant);
        if stored.is_named_by(&known) {
            return Ok(known);
        }

        let all = self.names.all(tenant)?;
        if stored.is_named_by(&all) {
            Ok(all)
        } else {
            Err(Fault::damaged("an attribute without a name"))
        }
    }

    /// Takes the entries of a user as it was in the index to those of it as it is.
    pub fn index(&mut self, before: Option<&Record>, after: Option<&Record>) -> Result<(), Fault> {
        let Some(record) = before.or(after) else { return Ok(()) };
        let names = self.names.known(record.user.tenant.as_str());
        let keys = |record: Option<&Record>| {
            record.map(|record| index_key::keys(&record.user, &names)).unwrap_or_default()
        };
        let (before, after) = (keys(before), keys(after));
        for key in before.iter().filter(|key| after.binary_search(key).is_err()) {
            self.index.remove(key.as_slice())?;
        }
        for key in after.iter().filter(|key| before.binary_search(key).is_err()) {
            self.index.insert(key.as_slice(), ())?;
        }
        Ok(())
    }
}
