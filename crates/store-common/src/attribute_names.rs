//! The ids of attributes' names. Names are long and repeat in every user, so stores write a small
//! number instead. A tenant's names get ids in the order in which they are first seen. An id never
//! changes its name and is never reused, not even by a new tenant of the same name. Caches of names
//! therefore never become wrong.

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};

use polynym_directory::Timestamp;

/// The number of an attribute's name in one tenant.
pub type AttributeId = u32;

/// The most names of one tenant.
pub const MAX_NAMES: usize = 10_000;
/// How long cached names may be used without checking that the tenant was not created anew.
const RECENT_AGE: Duration = Duration::from_secs(5);
/// The bytes of the cache: the names of 100,000 tenants with a few each.
const CACHE_BYTES: u64 = 64 << 20;
/// The shards of the cache: all names of one tenant must fit in one.
const CACHE_SHARDS: usize = 8;
/// The usual number of tenants in the cache.
const USUAL_TENANTS: usize = 100_000;
/// The bytes of a tenant in the cache besides its name and its attributes' names.
const TENANT_BYTES: usize = 256;
/// The bytes of a name in the cache besides its text: twice a pointer and a length, the counters
/// before the text, and an entry of the map.
const NAME_BYTES: usize = 64;

/// The known names of one tenant, from the first on.
#[derive(Clone, Debug, Default)]
pub struct KnownNames {
    /// The time when the tenant was created.
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

/// The cached names of tenants: those in use stay, the others leave when it is full.
pub struct AttributeNames(Names);

type Names =
    Cache<String, CachedNames, ByBytes, RandomState, DefaultLifecycle<String, CachedNames>>;

#[derive(Clone)]
struct CachedNames {
    names: Arc<KnownNames>,
    /// The time when they were read.
    read: Instant,
}

/// Weighs the names of a tenant by their bytes.
#[derive(Clone)]
struct ByBytes;

impl Weighter<String, CachedNames> for ByBytes {
    fn weight(&self, tenant: &String, cached: &CachedNames) -> u64 {
        let names: usize = cached.names.names().map(|name| NAME_BYTES + name.len()).sum();
        (TENANT_BYTES + tenant.len() + names) as u64
    }
}

impl Default for AttributeNames {
    fn default() -> Self {
        Self::with_capacity(CACHE_BYTES, USUAL_TENANTS)
    }
}

impl AttributeNames {
    fn with_capacity(bytes: u64, usual_tenants: usize) -> Self {
        let options = OptionsBuilder::new()
            .shards(CACHE_SHARDS)
            .estimated_items_capacity(usual_tenants)
            .weight_capacity(bytes)
            .build()
            .expect("both capacities are set");
        let (hasher, lifecycle) = (RandomState::default(), DefaultLifecycle::default());
        Self(Cache::with_options(options, ByBytes, hasher, lifecycle))
    }

    /// The known names of a tenant, which may have more.
    pub fn known(&self, tenant: &str) -> Arc<KnownNames> {
        self.0.get(tenant).map(|cached| cached.names).unwrap_or_default()
    }

    /// The names of a tenant that were read within `RECENT_AGE`.
    pub fn recent(&self, tenant: &str) -> Option<Arc<KnownNames>> {
        let cached = self.0.get(tenant)?;
        (cached.read.elapsed() < RECENT_AGE).then_some(cached.names)
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
        if self.known(tenant).next() <= names.next() {
            self.0.insert(tenant.to_owned(), CachedNames { names, read: Instant::now() });
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
    fn a_full_cache_keeps_the_tenants_in_use() {
        let (bytes, tenants) = (CACHE_SHARDS as u64 * 20_000, 200);
        let cache = AttributeNames::with_capacity(bytes, tenants);
        let is_known = |tenant: &str| !cache.known(tenant).is_empty();
        for n in 0..20 * tenants {
            cache.learn(&format!("tenant{n}"), names(1, 0, &["team", "plan"]));
            for used in (0..20).map(|n| format!("used{n}")) {
                if !is_known(&used) {
                    assert!(n < tenants, "a tenant in use has left");
                    cache.learn(&used, names(1, 0, &["team"]));
                }
            }
        }
        assert!(cache.0.weight() <= bytes, "{}", cache.0.weight());
        let remaining = (0..20 * tenants).filter(|n| is_known(&format!("tenant{n}"))).count();
        assert!((tenants / 4..=2 * tenants).contains(&remaining), "{remaining}");
    }

    #[test]
    fn a_tenant_with_the_most_names_fits_in_the_cache() {
        let all: Vec<_> = (0..MAX_NAMES).map(|n| format!("{n:0>256}")).collect();
        let all = names(1, 0, &all.iter().map(String::as_str).collect::<Vec<_>>());
        let cache = AttributeNames::default();
        cache.learn("default", all);
        assert_eq!(cache.known("default").next() as usize, MAX_NAMES);
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
