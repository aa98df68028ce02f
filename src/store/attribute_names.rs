//! The names of attributes as tokens. Customers' names are long and come back with every user, so
//! stores keep a small number in their place. A tenant's tokens are given in the order in which its
//! names are first seen, never change, and are never given again, also where a tenant of the same
//! name is made after its deletion. What was read once is therefore true for good.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::directory::model::timestamp::Timestamp;

/// The number that stands for a name in one tenant.
pub type Token = u32;

/// Names that one tenant may have.
pub const MOST_NAMES: usize = 10_000;
/// For how long the names of a tenant count as those of the tenant that has this name now.
const RECENT: Duration = Duration::from_secs(5);
/// Tenants in the cache.
const MOST_TENANTS: usize = 10_000;

/// The names of one tenant that are known, from the first on.
#[derive(Clone, Debug, Default)]
pub struct KnownNames {
    /// When the tenant was created that has these names.
    since: Timestamp,
    /// The token of the first.
    first: Token,
    names: Vec<Arc<str>>,
    tokens: HashMap<Arc<str>, Token>,
}

impl KnownNames {
    /// No names, for a tenant that was created at `since`; the first will have the token `first`.
    pub fn new(since: Timestamp, first: Token) -> Self {
        Self { since, first, ..Self::default() }
    }

    /// Whether they are those of the tenant that was created at `since`.
    pub fn is_of(&self, since: Timestamp) -> bool {
        self.since == since
    }

    /// Adds the next name. Returns its token.
    pub fn push(&mut self, name: &str) -> Token {
        let (token, name) = (self.next(), Arc::<str>::from(name));
        self.tokens.insert(name.clone(), token);
        self.names.push(name);
        token
    }

    /// Leaves the tokens before `token` without names, where what names them was lost.
    pub fn skip_to(&mut self, token: Token) {
        while self.next() < token {
            self.names.push(Arc::from(""));
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The token that the next name gets.
    pub fn next(&self) -> Token {
        self.first + self.names.len() as Token
    }

    /// The token of a name.
    pub fn token(&self, name: &str) -> Option<Token> {
        self.tokens.get(name).copied()
    }

    /// The name of a token.
    pub fn name(&self, token: Token) -> Option<&str> {
        let place = token.checked_sub(self.first)?;
        self.names.get(place as usize).map(|name| &**name).filter(|name| !name.is_empty())
    }

    /// The names after `after` in the order of their bytes, at most `limit`.
    pub fn page(&self, after: &str, limit: usize) -> Vec<String> {
        let mut names: Vec<_> = self.names().filter(|name| *name > after).collect();
        names.sort_unstable();
        names.truncate(limit);
        names.into_iter().map(str::to_owned).collect()
    }

    /// The names in the order of their tokens.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }
}

/// The names of tenants that were read before.
#[derive(Default)]
pub struct AttributeNames {
    tenants: RwLock<HashMap<String, (Arc<KnownNames>, Instant)>>,
}

impl AttributeNames {
    /// The names of a tenant that are known; there may be more.
    pub fn known(&self, tenant: &str) -> Arc<KnownNames> {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        tenants.get(tenant).map(|(names, _)| names.clone()).unwrap_or_default()
    }

    /// The names of a tenant as they were no longer ago than [`RECENT`].
    pub fn recent(&self, tenant: &str) -> Option<Arc<KnownNames>> {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        let (names, read) = tenants.get(tenant)?;
        (read.elapsed() < RECENT).then(|| names.clone())
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
        if tenants.len() >= MOST_TENANTS && !tenants.contains_key(tenant) {
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

    fn names(since: i64, first: Token, names: &[&str]) -> Arc<KnownNames> {
        let mut known = KnownNames::new(Timestamp::from_millis(since), first);
        for name in names {
            known.push(name);
        }
        Arc::new(known)
    }

    #[test]
    fn tokens_go_both_ways() {
        let known = names(1, 7, &["team", "plan"]);
        assert_eq!((known.token("team"), known.token("plan")), (Some(7), Some(8)));
        assert_eq!((known.name(6), known.name(7), known.name(9)), (None, Some("team"), None));
        let mut known = KnownNames::clone(&known);
        known.skip_to(10);
        assert_eq!((known.push("level"), known.name(9)), (10, None));
        assert_eq!(known.page("", 5), ["level", "plan", "team"]);
    }

    #[test]
    fn what_is_known_grows() {
        let cache = AttributeNames::default();
        cache.learn("default", names(1, 0, &["a", "b"]));
        cache.learn("default", names(1, 0, &["a"]));
        assert_eq!(cache.known("default").token("b"), Some(1));
        // The names of a tenant that was made again come after those of the former one.
        cache.learn("default", names(2, 2, &["b"]));
        assert_eq!(cache.known("default").token("b"), Some(2));
    }
}
