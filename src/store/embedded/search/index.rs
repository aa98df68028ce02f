//! The names and the index of attributes inside one write transaction.

use std::sync::Arc;

use redb::{Table, WriteTransaction};

use super::error::Fault;
use super::index_key;
use super::names::Names;
use super::schema::{ATTRIBUTE_NAMES, ATTRIBUTES, StoredUser};
use crate::directory::model::policies::Policies;
use crate::directory::model::record::Record;
use crate::store::attribute_names::{AttributeNames, KnownNames};
use crate::store::searched::AttributeTokens;

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

    /// Takes the entries of a user as it was in the index to those of it as it is. The tenant's
    /// definitions may have been others when the user was indexed last: what it may have had is
    /// removed, and while they change, all that it is to have is added.
    pub fn index(
        &mut self,
        before: Option<&Record>,
        after: Option<&Record>,
        policies: &Policies,
    ) -> Result<(), Fault> {
        let Some(record) = before.or(after) else { return Ok(()) };
        let names = self.names.known(record.user.tenant.as_str());
        let tokens = AttributeTokens { names: &names, policies };
        let had = |record: &Record| index_key::keys(&record.user, |name| names.token(name));
        let has = |record: &Record| index_key::keys(&record.user, |name| tokens.indexed(name));
        let before = before.map(had).unwrap_or_default();
        let after = after.map(has).unwrap_or_default();
        let is_changing = policies.index_change().is_some();
        for key in before.iter().filter(|key| after.binary_search(key).is_err()) {
            self.index.remove(key.as_slice())?;
        }
        let is_new = |key: &&Vec<u8>| is_changing || before.binary_search(key).is_err();
        for key in after.iter().filter(is_new) {
            self.index.insert(key.as_slice(), ())?;
        }
        Ok(())
    }
}
