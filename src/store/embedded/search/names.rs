//! The names of attributes inside one write transaction, and on a snapshot.

use std::collections::HashMap;
use std::sync::Arc;

use redb::{ReadableTable, Table};

use super::error::Fault;
use crate::directory::error::Error;
use crate::directory::model::record::Record;
use crate::directory::model::tenant::Tenant;
use crate::directory::model::timestamp::Timestamp;
use crate::store::attribute_names::{AttributeNames, KnownNames, MOST_NAMES, Token};

/// The table [`ATTRIBUTE_NAMES`] inside a write transaction.
pub type NamesTable<'t> = Table<'t, (&'static str, Token), (i64, &'static str)>;

/// The names of tenants as a write transaction sees them.
pub struct Names<'t> {
    table: NamesTable<'t>,
    cache: &'t AttributeNames,
    /// Those that were read or added in this transaction. They are known to others once it is
    /// committed.
    own: HashMap<String, Arc<KnownNames>>,
}

impl<'t> Names<'t> {
    pub fn new(table: NamesTable<'t>, cache: &'t AttributeNames) -> Self {
        Self { table, cache, own: HashMap::new() }
    }

    /// The names that are known without a look at the table.
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
        let all = Arc::new(read_all(&self.table, tenant)?);
        self.own.insert(tenant.to_owned(), all.clone());
        Ok(all)
    }

    /// The names of a tenant that was created at `since`, with all that these users have. New ones
    /// are added. The inner error is the caller's, and nothing was added.
    pub fn with_names_of<'r>(
        &mut self,
        tenant: &Tenant,
        since: Timestamp,
        users: impl Iterator<Item = &'r Record> + Clone,
    ) -> Result<Result<Arc<KnownNames>, Error>, Fault> {
        self.with_at_most(MOST_NAMES, tenant, since, users)
    }

    /// The same, where the tenant may have `limit` names.
    pub fn with_at_most<'r>(
        &mut self,
        limit: usize,
        tenant: &Tenant,
        since: Timestamp,
        users: impl Iterator<Item = &'r Record> + Clone,
    ) -> Result<Result<Arc<KnownNames>, Error>, Fault> {
        let tenant = tenant.as_str();
        let has_all = |known: &KnownNames| {
            let mut names = users.clone().flat_map(|record| record.user.attributes.keys());
            names.all(|name| known.is_of(since) && known.token(name).is_some())
        };
        let known = self.known(tenant);
        if has_all(&known) {
            return Ok(Ok(known));
        }

        let mut known = KnownNames::clone(&*self.all(tenant)?);
        if !known.is_of(since) {
            known = KnownNames::new(since, known.next());
        }
        let mut new: Vec<_> = users.flat_map(|record| record.user.attributes.keys()).collect();
        new.retain(|name| known.token(name).is_none());
        new.sort_unstable();
        new.dedup();
        if known.names().len() + new.len() > limit {
            return Ok(Err(Error::AttributeNamesFull { limit }));
        }

        for name in new {
            let token = known.push(name);
            self.table.insert((tenant, token), (since.as_millis(), name.as_str()))?;
        }
        let known = Arc::new(known);
        self.own.insert(tenant.to_owned(), known.clone());
        Ok(Ok(known))
    }

    /// Removes the names of a tenant. Their tokens are not given again.
    pub fn remove(&mut self, tenant: &str) -> Result<(), Fault> {
        let next = read_all(&self.table, tenant)?.next();
        let all = (tenant, 0)..=(tenant, Token::MAX);
        self.table.retain_in(all, |_, _| false)?;
        if let Some(last) = next.checked_sub(1) {
            self.table.insert((tenant, last), (i64::MIN, ""))?;
        }
        self.own.remove(tenant);
        Ok(())
    }

    /// What this transaction knows. Others may know it once it is committed.
    pub fn into_own(self) -> HashMap<String, Arc<KnownNames>> {
        self.own
    }
}

/// All names of a tenant in the table.
pub fn read_all(
    table: &impl ReadableTable<(&'static str, Token), (i64, &'static str)>,
    tenant: &str,
) -> Result<KnownNames, Fault> {
    let mut names = KnownNames::default();
    for row in table.range((tenant, 0)..=(tenant, Token::MAX))? {
        let (token, name) = row?;
        let (token, (since, name)) = (token.value().1, name.value());
        // The tokens up to here were given to a tenant of this name that was deleted.
        if name.is_empty() {
            names = KnownNames::new(Timestamp::from_millis(since), token + 1);
            continue;
        }
        if names.is_empty() {
            names = KnownNames::new(Timestamp::from_millis(since), token);
        }
        names.skip_to(token);
        names.push(name);
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use redb::{Database, backends::InMemoryBackend};

    use super::super::schema::ATTRIBUTE_NAMES;
    use super::*;
    use crate::directory::model::attribute::Value;
    use crate::directory::model::new_user::NewUser;

    fn record(names: &[&str]) -> Record {
        let attributes = names.iter().map(|name| ((*name).to_owned(), Value::Bool(true))).collect();
        let user = NewUser { attributes, ..NewUser::default() };
        Record::new(user.user([1; 16].into(), Tenant::DEFAULT, Timestamp::default()))
    }

    #[test]
    fn tokens_are_given_once() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let (cache, tenant) = (AttributeNames::default(), Tenant::DEFAULT);
        let time = Timestamp::from_millis;
        let transaction = database.begin_write().unwrap();
        let table = transaction.open_table(ATTRIBUTE_NAMES).unwrap();
        let mut names = Names::new(table, &cache);
        let mut tokens = |since, wanted: &[&str]| {
            let record = record(wanted);
            let known = names.with_names_of(&tenant, time(since), [&record].into_iter()).unwrap();
            let known = known.unwrap();
            let tokens: Vec<_> = wanted.iter().map(|name| known.token(name).unwrap()).collect();
            (tokens, known.names().len())
        };
        assert_eq!(tokens(1, &["a", "b"]), (vec![0, 1], 2));
        assert_eq!(tokens(1, &["b", "c"]), (vec![1, 2], 3));
        names.remove("default").unwrap();
        let known = names.all("default").unwrap();
        assert_eq!((known.next(), known.names().len()), (3, 0));
        let record = record(&["b"]);
        let known = names.with_names_of(&tenant, time(2), [&record].into_iter()).unwrap().unwrap();
        assert_eq!(known.token("b"), Some(3));
    }
}
