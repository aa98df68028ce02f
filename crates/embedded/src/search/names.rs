//! The names of attributes inside one write transaction.

use std::collections::HashMap;
use std::sync::Arc;

use redb::Table;

use crate::error::Fault;
use crate::lookup::snapshot::read_names;
use polynym_directory::{Error, Record, Tenant, Timestamp};
use polynym_store_common::attribute_names::{AttributeId, AttributeNames, KnownNames, MAX_NAMES};

/// The table of names inside a write transaction.
pub type NamesTable<'t> = Table<'t, (&'static str, AttributeId), (i64, &'static str)>;

/// The names of tenants as a write transaction sees them.
pub struct Names<'t> {
    table: NamesTable<'t>,
    cache: &'t AttributeNames,
    /// The names that this transaction has read or added. They may be cached once it is committed.
    own: HashMap<String, Arc<KnownNames>>,
}

impl<'t> Names<'t> {
    pub fn new(table: NamesTable<'t>, cache: &'t AttributeNames) -> Self {
        Self { table, cache, own: HashMap::new() }
    }

    /// The names that are known without reading the table.
    pub fn known(&mut self, tenant: &str) -> Arc<KnownNames> {
        if let Some(own) = self.own.get(tenant) {
            return own.clone();
        }
        let known = self.cache.known(tenant);
        self.own.insert(tenant.to_owned(), known.clone());
        known
    }

    /// All names.
    pub fn all(&mut self, tenant: &str) -> Result<Arc<KnownNames>, Fault> {
        let all = Arc::new(read_names(&self.table, tenant)?);
        self.own.insert(tenant.to_owned(), all.clone());
        Ok(all)
    }

    /// The names of a tenant that was created at `since`, including all names of these users, of
    /// which new ones are added. Adds nothing if it returns the inner error, which is the caller's.
    pub fn with_names_of<'r>(
        &mut self,
        tenant: &Tenant,
        since: Timestamp,
        users: impl Iterator<Item = &'r Record> + Clone,
    ) -> Result<Result<Arc<KnownNames>, Error>, Fault> {
        let tenant_name = tenant.as_str();
        let has_all = |known: &KnownNames| {
            let mut names = users.clone().flat_map(|record| record.user.attributes.keys());
            names.all(|name| known.is_of(since) && known.id(name).is_some())
        };
        let known = self.known(tenant_name);
        if has_all(&known) {
            return Ok(Ok(known));
        }

        let mut known = KnownNames::clone(&*self.all(tenant_name)?);
        if !known.is_of(since) {
            known = KnownNames::new(since, known.next());
        }
        let mut new: Vec<_> = users.flat_map(|record| record.user.attributes.keys()).collect();
        new.retain(|name| known.id(name).is_none());
        new.sort_unstable();
        new.dedup();
        if known.names().len() + new.len() > MAX_NAMES {
            return Ok(Err(Error::AttributeNamesFull { limit: MAX_NAMES }));
        }

        for name in new {
            let id = known.push(name);
            self.table.insert((tenant_name, id), (since.as_millis(), name.as_str()))?;
        }
        let shared = Arc::new(known);
        self.own.insert(tenant_name.to_owned(), shared.clone());
        Ok(Ok(shared))
    }

    /// Removes the names of a tenant. Their ids are never reused.
    pub fn remove(&mut self, tenant: &str) -> Result<(), Fault> {
        let next = read_names(&self.table, tenant)?.next();
        let all = (tenant, 0)..=(tenant, AttributeId::MAX);
        self.table.retain_in(all, |_, _| false)?;
        if let Some(last) = next.checked_sub(1) {
            self.table.insert((tenant, last), (i64::MIN, ""))?;
        }
        self.own.remove(tenant);
        Ok(())
    }

    /// The names that this transaction has read or added.
    pub fn into_own(self) -> HashMap<String, Arc<KnownNames>> {
        self.own
    }
}

#[cfg(test)]
mod tests {
    use redb::{Database, backends::InMemoryBackend};

    use super::*;
    use crate::schema::tables::ATTRIBUTE_NAMES;
    use polynym_directory::{NewUser, Value};

    fn record(names: &[&str]) -> Record {
        let attributes = names.iter().map(|name| ((*name).to_owned(), Value::Bool(true))).collect();
        let user = NewUser { attributes, ..NewUser::default() };
        Record::new(user.user([1; 16].into(), Tenant::DEFAULT, Timestamp::default()))
    }

    #[test]
    fn ids_are_never_reused() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let (cache, tenant) = (AttributeNames::default(), Tenant::DEFAULT);
        let time = Timestamp::from_millis;
        let transaction = database.begin_write().unwrap();
        let table = transaction.open_table(ATTRIBUTE_NAMES).unwrap();
        let mut names = Names::new(table, &cache);
        let mut ids = |since, wanted: &[&str]| {
            let record = record(wanted);
            let named = names.with_names_of(&tenant, time(since), [&record].into_iter()).unwrap();
            let known = named.unwrap();
            let ids: Vec<_> = wanted.iter().map(|name| known.id(name).unwrap()).collect();
            (ids, known.names().len())
        };
        assert_eq!(ids(1, &["a", "b"]), (vec![0, 1], 2));
        assert_eq!(ids(1, &["b", "c"]), (vec![1, 2], 3));
        names.remove("default").unwrap();
        let known = names.all("default").unwrap();
        assert_eq!((known.next(), known.names().len()), (3, 0));
        let record = record(&["b"]);
        let known = names.with_names_of(&tenant, time(2), [&record].into_iter()).unwrap().unwrap();
        assert_eq!(known.id("b"), Some(3));
    }
}
