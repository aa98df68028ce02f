//! The times at which this server's own writes ended, by users and keys.

use std::sync::atomic::{AtomicU64, Ordering};

use locality_uuid::LocalityId;
use xxhash_rust::xxh3::xxh3_64;

use super::instant::CacheInstant;
use polynym_identifier::IdentityKey;

const MIN_SLOTS: usize = 1 << 10;
const MAX_SLOTS: usize = 1 << 20;

/// A table from the hash of a user's id or a key to the end of the last write. Users and keys may
/// share a slot: a write of one then invalidates older reads of the others.
pub struct OwnWrites(Box<[AtomicU64]>);

impl OwnWrites {
    /// A table of about `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        let slots = (bytes / size_of::<AtomicU64>()).clamp(MIN_SLOTS, MAX_SLOTS);
        Self(std::iter::repeat_with(AtomicU64::default).take(slots).collect())
    }

    /// The end of the last write of a user.
    pub fn of_user(&self, id: LocalityId) -> CacheInstant {
        self.last(id.as_bytes())
    }

    /// The end of the last write of a key's claim.
    pub fn of_key(&self, key: &IdentityKey) -> CacheInstant {
        self.last(key.as_str().as_bytes())
    }

    /// Records the end of a write of a user.
    pub fn record_user(&self, id: LocalityId, end: CacheInstant) {
        self.record(id.as_bytes(), end);
    }

    /// Records the end of a write of a key's claim.
    pub fn record_key(&self, key: &IdentityKey, end: CacheInstant) {
        self.record(key.as_str().as_bytes(), end);
    }

    fn last(&self, name: &[u8]) -> CacheInstant {
        CacheInstant(self.slot(name).load(Ordering::Acquire))
    }

    fn record(&self, name: &[u8], end: CacheInstant) {
        self.slot(name).fetch_max(end.0, Ordering::AcqRel);
    }

    fn slot(&self, name: &[u8]) -> &AtomicU64 {
        let hash = u128::from(xxh3_64(name));
        &self.0[((hash * self.0.len() as u128) >> 64) as usize]
    }
}
