//! Hints of the owners of keys, which save the read of a claim.
//!
//! A hint may be wrong: the user's record shows whether it owns the key. So mutations need not
//! update the table, and threads share it without a lock. A hint that is stale, that belongs to
//! another key with the same hash, or that two threads wrote concurrently, is detected and costs
//! one more read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use arc_swap::ArcSwap;
use locality_uuid::LocalityId;
use xxhash_rust::xxh3::xxh3_64;

use polynym_directory::ClaimWrite;
use polynym_identifier::IdentityKey;

/// The default bytes of a table: room for three million keys.
pub const HINT_BYTES: usize = 64 << 20;
/// The slots of a bucket.
const WAYS: usize = 8;
/// The buckets of a new table.
const INITIAL_BUCKETS: usize = 1 << 9;

/// A lossy table from the hash of a key to the id of its last known owner. It starts small and
/// doubles while it fills, up to its bound.
pub struct OwnerHints {
    table: ArcSwap<Table>,
    max_buckets: usize,
    is_growing: AtomicBool,
}

struct Table {
    buckets: Box<[Bucket]>,
    used: AtomicUsize,
}

/// Eight slots of 20 bytes: the upper half of a key's hash, zero for an empty slot, and the owner.
#[derive(Default)]
struct Bucket {
    hashes: [AtomicU32; WAYS],
    ids: [[AtomicU64; 2]; WAYS],
}

impl OwnerHints {
    /// A table of at most `bytes` bytes. It remembers nothing if no bucket fits.
    pub fn new(bytes: usize) -> Arc<Self> {
        let max_buckets = bytes / size_of::<Bucket>();
        let table = ArcSwap::from_pointee(Table::new(max_buckets.min(INITIAL_BUCKETS)));
        Arc::new(Self { table, max_buckets, is_growing: AtomicBool::new(false) })
    }

    /// The probable owner of `key`.
    pub fn guess(&self, key: &IdentityKey) -> Option<LocalityId> {
        self.table.load().get(hash(key))
    }

    /// Remembers the owner of `key`. Replaces another key if the bucket is full.
    pub fn learn(self: &Arc<Self>, key: &IdentityKey, owner: LocalityId) {
        let table = self.table.load();
        table.put(hash(key), owner);
        if table.is_crowded() && table.buckets.len() < self.max_buckets {
            self.grow();
        }
    }

    /// Remembers the owner that a mutation gives to `key`.
    pub fn learn_write(self: &Arc<Self>, key: &IdentityKey, write: &ClaimWrite) {
        if let ClaimWrite::Insert(claim) | ClaimWrite::Update(claim) = write
            && let Some(owner) = claim.resolves_to()
        {
            self.learn(key, owner);
        }
    }

    /// Doubles the table on another thread. Owners learned meanwhile may be lost.
    fn grow(self: &Arc<Self>) {
        if self.is_growing.swap(true, Relaxed) {
            return;
        }

        let hints = self.clone();
        let double = move || {
            let old = hints.table.load_full();
            let larger = Table::new((old.buckets.len() * 2).min(hints.max_buckets));
            old.entries().for_each(|(hash, owner)| larger.put(hash, owner));
            hints.table.store(Arc::new(larger));
            hints.is_growing.store(false, Relaxed);
        };
        if std::thread::Builder::new().name("hints".to_owned()).spawn(double).is_err() {
            self.is_growing.store(false, Relaxed);
        }
    }
}

impl Table {
    fn new(count: usize) -> Self {
        let buckets = std::iter::repeat_with(Bucket::default).take(count).collect();
        Self { buckets, used: AtomicUsize::new(0) }
    }

    /// Whether five eighths of the slots are used, when the first buckets are full.
    fn is_crowded(&self) -> bool {
        self.used.load(Relaxed) > self.buckets.len() * WAYS * 5 / 8
    }

    fn get(&self, hash: u32) -> Option<LocalityId> {
        let bucket = self.bucket(hash)?;
        bucket.slot(hash).and_then(|slot| bucket.owner(slot))
    }

    fn put(&self, hash: u32, owner: LocalityId) {
        let Some(bucket) = self.bucket(hash) else { return };
        let slot = bucket.slot(hash).or_else(|| {
            let empty = bucket.slot(0)?;
            self.used.fetch_add(1, Relaxed);
            Some(empty)
        });
        // The low bits of the hash select the key to replace; the high ones selected the bucket.
        bucket.set(slot.unwrap_or(hash as usize % WAYS), hash, owner);
    }

    /// The bucket of a hash. Buckets are in the order of hashes, so that growing is one pass.
    fn bucket(&self, hash: u32) -> Option<&Bucket> {
        self.buckets.get(((u64::from(hash) * self.buckets.len() as u64) >> 32) as usize)
    }

    fn entries(&self) -> impl Iterator<Item = (u32, LocalityId)> {
        let slots =
            self.buckets.iter().flat_map(|bucket| (0..WAYS).map(move |slot| (bucket, slot)));
        slots.filter_map(|(bucket, slot)| {
            let hash = Some(bucket.hashes[slot].load(Relaxed)).filter(|hash| *hash != 0)?;
            Some((hash, bucket.owner(slot)?))
        })
    }
}

impl Bucket {
    fn slot(&self, hash: u32) -> Option<usize> {
        self.hashes.iter().position(|slot| slot.load(Relaxed) == hash)
    }

    fn owner(&self, slot: usize) -> Option<LocalityId> {
        let [high, low] = self.ids[slot].each_ref().map(|half| half.load(Relaxed));
        let id = u128::from(high) << 64 | u128::from(low);
        (id != 0).then(|| LocalityId::from(id.to_be_bytes()))
    }

    fn set(&self, slot: usize, hash: u32, owner: LocalityId) {
        let id = u128::from_be_bytes(*owner.as_bytes());
        self.ids[slot][0].store((id >> 64) as u64, Relaxed);
        self.ids[slot][1].store(id as u64, Relaxed);
        self.hashes[slot].store(hash, Relaxed);
    }
}

/// The upper half of the key's hash. Never zero, which marks an empty slot.
fn hash(key: &IdentityKey) -> u32 {
    ((xxh3_64(key.as_str().as_bytes()) >> 32) as u32).max(1)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use polynym_identifier::{Identifier, RawIdentifier};

    fn key(n: u64) -> IdentityKey {
        let handle = format!("user{n}");
        IdentityKey::new("default", &Identifier::parse(RawIdentifier::Handle(&handle)).unwrap())
    }

    fn id(n: u64) -> LocalityId {
        let spread = u128::from(n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        LocalityId::from(spread.to_be_bytes())
    }

    fn remembered(hints: &OwnerHints, keys: u64) -> u64 {
        (0..keys).filter(|n| hints.guess(&key(*n)) == Some(id(*n))).count() as u64
    }

    fn wait_for_growth(hints: &OwnerHints) {
        let since = Instant::now();
        while hints.is_growing.load(Relaxed) && since.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_table_grows_while_it_fills_and_keeps_nearly_all_keys() {
        let hints = OwnerHints::new(1 << 30);
        for n in 0..100_000 {
            hints.learn(&key(n), id(n));
            wait_for_growth(&hints);
        }
        assert!(remembered(&hints, 100_000) > 95_000, "{}", remembered(&hints, 100_000));
        let unknown = (200_000..300_000).filter(|n| hints.guess(&key(*n)).is_some()).count();
        assert!(unknown < 100, "{unknown} keys that were never learned have a guess");
    }

    #[test]
    fn a_full_table_takes_at_most_24_bytes_for_each_key() {
        let bytes = 1 << 20;
        let hints = OwnerHints::new(bytes);
        for n in 0..200_000 {
            hints.learn(&key(n), id(n));
            wait_for_growth(&hints);
        }
        let table = hints.table.load();
        assert!(size_of_val(&*table.buckets) <= bytes);
        let remembered = remembered(&hints, 200_000);
        assert!(bytes as u64 <= remembered * 24, "{remembered} keys in {bytes} bytes");
    }

    #[test]
    fn a_later_owner_replaces_an_earlier_one() {
        let hints = OwnerHints::new(1 << 20);
        hints.learn(&key(1), id(1));
        hints.learn(&key(1), id(2));
        assert_eq!(hints.guess(&key(1)), Some(id(2)));
    }

    #[test]
    fn a_table_without_room_remembers_nothing() {
        let hints = OwnerHints::new(0);
        hints.learn(&key(1), id(1));
        assert_eq!(hints.guess(&key(1)), None);
    }
}
