//! The times at which this server's own writes ended, by users and keys.

use std::sync::atomic::{AtomicU64, Ordering};

use locality_uuid::LocalityId;
use xxhash_rust::xxh3::xxh3_64;

use super::Moment;
use crate::identifier::IdentityKey;

/// The fewest and the most slots.
const SLOTS: [usize; 2] = [1 << 10, 1 << 20];

/// A table from the hash of a user's id or a key to the end of the last write. A slot may be
/// shared: a write of one then voids what was read of the others before.
pub struct OwnWrites(Box<[AtomicU64]>);

impl OwnWrites {
    /// A table of about `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        let slots = (bytes / size_of::<AtomicU64>()).clamp(SLOTS[0], SLOTS[1]);
        Self(std::iter::repeat_with(AtomicU64::default).take(slots).collect())
    }

    /// The end of the last write of a user.
    pub fn of_user(&self, id: LocalityId) -> Moment {
        self.last(id.as_bytes())
    }

    /// The end of the last write of a key's claim.
    pub fn of_key(&self, key: &IdentityKey) -> Moment {
        self.last(key.as_str().as_bytes())
    }

    /// Notes that a write of a user has ended.
    pub fn note_user(&self, id: LocalityId, end: Moment) {
        self.note(id.as_bytes(), end);
    }

    /// Notes that a write of a key's claim has ended.
    pub fn note_key(&self, key: &IdentityKey, end: Moment) {
        self.note(key.as_str().as_bytes(), end);
    }

    fn last(&self, name: &[u8]) -> Moment {
        Moment(self.slot(name).load(Ordering::Acquire))
    }

    fn note(&self, name: &[u8], end: Moment) {
        self.slot(name).fetch_max(end.0, Ordering::AcqRel);
    }

    fn slot(&self, name: &[u8]) -> &AtomicU64 {
        let hash = u128::from(xxh3_64(name));
        &self.0[((hash * self.0.len() as u128) >> 64) as usize]
    }
}
