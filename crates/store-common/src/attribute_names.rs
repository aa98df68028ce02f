//! The ids of attributes' names. Names are long and repeat in every user, so stores write a small
//! number instead. A tenant's names get ids in the order in which they are first seen. An id never
//! changes its name and is never reused, not even by a new tenant of the same name. Caches of names
//! therefore never become wrong.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use polynym_directory::timestamp::Timestamp;

/// The number of an attribute's name in one tenant.
pub type AttributeId = u32;

/// The most names of one tenant.
pub const MAX_NAMES: usize = 10_000;
/// How long cached names may be used without checking that the tenant was not created anew.
const RECENT_AGE: Duration = Duration::from_secs(5);
/// The most tenants in the cache.
const MAX_TENANTS: usize = 10_000;

/// The known names of one tenant, from the first on.
#[derive(Clone, Debug, Default)]
pub struct KnownNames {
    /// When the tenant was created.
    since: Timestamp,
    /// The id of the first name.
    first: AttributeId,
    names: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, AttributeId>,
}

impl KnownNames {
    /// No names, for a tenant that was created at `since`. The first name will have the id `first`.
    pub fn new(since: Timestamp, first: AttributeId) -> Self {
        Self { since, first, ..Self::default() }
    }

    /// Whether the tenant was created at `since`.
    pub fn is_of(&self, since: Timestamp) -> bool {
        self.since == since
    }

    /// Adds the next name. Returns its id.
    pub fn push(&mut self, name: &str) -> AttributeId {
        let (id, name) = (self.next(), Arc::<str>::from(name));
        self.ids.insert(name.clone(), id);
        self.names.push(name);
        id
    }

    /// Leaves the ids before `id` without names, because the names are lost.
    pub fn skip_to(&mut self, id: AttributeId) {
        while self.next() < id {
            self.names.push(Arc::from(""));
        }
    }

    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The id of the next name.
    pub fn next(&self) -> AttributeId {
        self.first + self.names.len() as AttributeId
    }

    /// The id of a name.
    pub fn id(&self, name: &str) -> Option<AttributeId> {
        self.ids.get(name).copied()
    }

    /// The name of an id.
    pub fn name(&self, id: AttributeId) -> Option<&str> {
        let index = id.checked_sub(self.first)?;
        self.names.get(index as usize).map(|name| &**name).filter(|name| !name.is_empty())
    }

    /// At most `limit` names after `after`, in the order of their bytes.
    pub fn page(&self, after: &str, limit: usize) -> Vec<String> {
        let mut names: Vec<_> = self.names().filter(|name| *name > after).collect();
        names.sort_unstable();
        names.truncate(limit);
        names.into_iter().map(str::to_owned).collect()
    }

    /// The names in the order of their ids.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }
}

/// The cached names of tenants.
#[derive(Default)]
pub struct AttributeNames {
    tenants: RwLock<HashMap<String, (Arc<KnownNames>, Instant)>>,
}

impl AttributeNames {
    /// The known names of a tenant, which may have more.
    pub fn known(&self, tenant: &str) -> Arc<KnownNames> {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        tenants.get(tenant).map(|(names, _)| names.clone()).unwrap_or_default()
    }

    /// The names of a tenant that were read within `RECENT_AGE`.
    pub fn recent(&self, tenant: &str) -> Option<Arc<KnownNames>> {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        let (names, read) = tenants.get(tenant)?;
        (read.elapsed() < RECENT_AGE).then(|| names.clone())
    }

    /// Adds the names of several tenants.
    pub fn learn_all(&self, tenants: HashMap<String, Arc<KnownNames>>) {
        for (tenant, names) in tenants {
            if self.known(&tenant).next() < names.next() {
                self.learn(&tenant, names);
            }
        }
    }

    /// Adds the names of a tenant that were read, unless more are known.
    pub fn learn(&self, tenant: &str, names: Arc<KnownNames>) {
        let mut tenants = self.tenants.write().unwrap_or_else(PoisonError::into_inner);
        if tenants.len() >= MAX_TENANTS && !tenants.contains_key(tenant) {
            tenants.clear();
        }
        let known = tenants.get(tenant).map_or(0, |(known, _)| known.next());
        if known <= names.next() {
            tenants.insert(tenant.to_owned(), (names, Instant::now()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(since: i64, first: AttributeId, names: &[&str]) -> Arc<KnownNames> {
        let mut known = KnownNames::new(Timestamp::from_millis(since), first);
        for name in names {
            known.push(name);
        }
        Arc::new(known)
    }

    #[test]
    fn names_have_ids_and_ids_have_names() {
        let known = names(1, 7, &["team", "plan"]);
        assert_eq!((known.id("team"), known.id("plan")), (Some(7), Some(8)));
        assert_eq!((known.name(6), known.name(7), known.name(9)), (None, Some("team"), None));
        let mut extended = KnownNames::clone(&known);
        extended.skip_to(10);
        assert_eq!((extended.push("level"), extended.name(9)), (10, None));
        assert_eq!(extended.page("", 5), ["level", "plan", "team"]);
    }

    #[test]
    fn learned_names_replace_fewer_or_older_ones() {
        let cache = AttributeNames::default();
        cache.learn("default", names(1, 0, &["a", "b"]));
        cache.learn("default", names(1, 0, &["a"]));
        assert_eq!(cache.known("default").id("b"), Some(1));
        // The names of a tenant that was created anew follow those of the former one.
        cache.learn("default", names(2, 2, &["b"]));
        assert_eq!(cache.known("default").id("b"), Some(2));
    }
}
