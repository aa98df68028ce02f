//! Finds unclaimed keys that several users may list, in bounded memory: a bit for each key's hash,
//! and the hashes whose bit was already set. Two keys may share a bit: another pass over the users
//! distinguishes them.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use polynym_identifier::IdentityKey;

/// The number of bits: 64 MiB. Of ten million keys, one in a hundred shares its bit.
const BITS: u64 = 1 << 29;

/// Hashes keys with a random secret.
#[derive(Default)]
pub struct Hashes(RandomState);

impl Hashes {
    pub fn of(&self, key: &IdentityKey) -> u64 {
        self.0.hash_one(key.as_str())
    }
}

/// The hashes that were added, and those that were perhaps added more than once.
#[derive(Default)]
pub struct DuplicateFilter {
    /// Empty until the first hash is added.
    bits: Vec<u64>,
    repeated: HashSet<u64>,
}

impl DuplicateFilter {
    pub fn add(&mut self, hash: u64) {
        self.bits.resize((BITS / 64) as usize, 0);
        let bit = hash % BITS;
        let word = &mut self.bits[(bit / 64) as usize];
        if *word >> (bit % 64) & 1 == 1 {
            self.repeated.insert(hash);
        }
        *word |= 1 << (bit % 64);
    }

    /// Whether no hash was added.
    pub const fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    /// The hashes that may have been added more than once.
    pub fn into_repeated(self) -> HashSet<u64> {
        self.repeated
    }
}
