//! The bound of the cache's memory, and the rules under which a key is looked up.

use polynym_directory::{Found, View};
use polynym_layers::lookup_cache::{LookupCache, Terms};

use super::DAY;
use super::scene::encoded;
use crate::support::users;

const TERMS: Terms = Terms { view: View::Full, rules: 1 };

#[test]
fn the_entries_stay_within_their_bytes() {
    let bytes = 1 << 20;
    let cache = LookupCache::new(bytes);
    for n in 0..10_000 {
        let [_, key] = users::keys(n);
        let found = Found::new(encoded(n), &key);
        cache.put(&key, TERMS, cache.now(), found.as_ref());
        assert!(cache.bytes() <= bytes as u64, "{} bytes after {n} users", cache.bytes());
    }
    assert!(cache.bytes() > bytes as u64 / 2, "{} bytes", cache.bytes());
    let kept = (0..10_000).filter(|n| cache.get(&users::keys(*n)[1], TERMS, DAY).is_some()).count();
    assert!((500..5_000).contains(&kept), "{kept} users are kept");
}

#[test]
fn an_oversized_user_is_not_cached() {
    let cache = LookupCache::new(1 << 10);
    let [_, key] = users::keys(1);
    let found = Found::new(encoded(1), &key);
    for _ in 0..3 {
        cache.put(&key, TERMS, cache.now(), found.as_ref());
        assert!(cache.bytes() <= 1 << 10);
    }
}

/// The key may be the new key of a user whose identity was moved to other rules.
#[test]
fn a_cached_absence_is_valid_under_the_same_rules_only() {
    let cache = LookupCache::new(1 << 20);
    let [_, key] = users::keys(1);
    cache.put(&key, TERMS, cache.now(), None);
    assert!(cache.get(&key, TERMS, DAY).is_some());
    assert!(cache.get(&key, Terms { rules: 2, ..TERMS }, DAY).is_none());
}
