//! Look-ups that the cache answers if their callers accept stale answers.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use locality_uuid::LocalityId;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use super::{Hit, LookupCache, Terms};
use polynym_directory::{
    Consistency, CurrentRules, EncodedUser, Error, Found, ItemResult, LookUps, Resolved, Tenant,
    View,
};
use polynym_identifier::IdentityKey;

/// The counter of look-ups that may be answered from the cache.
pub const LOOK_UPS: (&str, &str) = (
    "polynym_lookup_cache_lookups_total",
    "Identifiers that were looked up with max_staleness, by outcome: hit or miss",
);
/// The histogram of the ages of answers.
pub const AGE: (&str, &str) =
    ("polynym_lookup_cache_age_seconds", "Age of answers from the look-up cache");
/// The gauge of the cache's size.
pub const BYTES: (&str, &str) = ("polynym_lookup_cache_bytes", "Bytes in the look-up cache");

/// A store with a cache above it. Look-ups that miss at the same time share reads if `inner`
/// coalesces look-ups: this layer adds no sharing of its own.
pub struct Cached {
    inner: Arc<dyn LookUps>,
    rules: Arc<dyn CurrentRules>,
    cache: Arc<LookupCache>,
}

impl Cached {
    /// Answers look-ups of `inner` from `cache`, by the current `rules`. The store below
    /// must report its own writes to the cache by [`LookupCache::pending_write`].
    pub fn new(
        inner: Arc<dyn LookUps>,
        rules: Arc<dyn CurrentRules>,
        cache: Arc<LookupCache>,
    ) -> Self {
        Self { inner, rules, cache }
    }

    /// The terms of a look-up that the cache may answer. None for others.
    async fn terms(
        &self,
        consistency: Consistency,
        view: View,
        max_staleness: Duration,
    ) -> Result<Option<Terms>, Error> {
        if max_staleness.is_zero() || consistency == Consistency::Linearizable {
            return Ok(None);
        }
        let rules = self.rules.rules(consistency).await?;
        // While identities are moved to other rules, an identifier has two keys.
        Ok(rules.next.is_none().then_some(Terms { view, rules: rules.version }))
    }

    /// The answer to a look-up of `key` from the cache. Counts the look-up.
    fn hit(&self, key: &IdentityKey, terms: Terms, max_age: Duration) -> Option<ItemResult<Found>> {
        let Some(Hit { found, age }) = self.cache.get(key, terms, max_age) else {
            metrics_of_cache().misses.increment(1);
            return None;
        };
        metrics_of_cache().hits.increment(1);
        metrics_of_cache().age.record(age.as_secs_f64());
        Some(Ok(found))
    }

    /// Reads `keys` from the store below. Caches the answers of LATEST reads: the age of an
    /// EVENTUAL answer is unknown.
    async fn read(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        terms: Terms,
    ) -> Result<Resolved, Error> {
        let sent = self.cache.now();
        let resolved = self.inner.resolve(keys, consistency, terms.view, Duration::ZERO).await?;
        if consistency == Consistency::Latest {
            for (key, found) in keys.iter().zip(&resolved.found) {
                if let Ok(found) = found {
                    self.cache.put(key, terms, sent, found.as_ref());
                }
            }
            metrics_of_cache().bytes.set(self.cache.bytes() as f64);
        }
        Ok(resolved)
    }
}

#[async_trait]
impl LookUps for Cached {
    async fn resolve(
        &self,
        keys: &[IdentityKey],
        consistency: Consistency,
        view: View,
        max_staleness: Duration,
    ) -> Result<Resolved, Error> {
        let Some(terms) = self.terms(consistency, view, max_staleness).await? else {
            return self.inner.resolve(keys, consistency, view, max_staleness).await;
        };

        let hits: Vec<_> = keys.iter().map(|key| self.hit(key, terms, max_staleness)).collect();
        let missed = keys.iter().zip(&hits).filter(|(_, hit)| hit.is_none());
        let missed: Vec<_> = missed.map(|(key, _)| key.clone()).collect();
        let read = match missed.is_empty() {
            true => Resolved { found: Vec::new(), reads: 0 },
            false => self.read(&missed, consistency, terms).await?,
        };
        let (mut rest, reads) = (read.found.into_iter(), read.reads);
        let found = hits.into_iter().map_while(|hit| hit.or_else(|| rest.next())).collect();
        Ok(Resolved { found, reads })
    }

    async fn get(
        &self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        self.inner.get(tenant, ids, view).await
    }
}

struct CacheMetrics {
    hits: Counter,
    misses: Counter,
    age: Histogram,
    bytes: Gauge,
}

fn metrics_of_cache() -> &'static CacheMetrics {
    static METRICS: OnceLock<CacheMetrics> = OnceLock::new();
    METRICS.get_or_init(|| CacheMetrics {
        hits: counter!(LOOK_UPS.0, "outcome" => "hit"),
        misses: counter!(LOOK_UPS.0, "outcome" => "miss"),
        age: histogram!(AGE.0),
        bytes: gauge!(BYTES.0),
    })
}
