//! Keys that several users may list without a claim that decides, found in bounded memory: a bit
//! for each key's hash, and the hashes whose bit was set before. Two keys may share a bit; another
//! pass over the users separates them.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use crate::identifier::IdentityKey;

/// The number of bits: 64 MiB. Of ten million keys, one in a hundred shares its bit with another
/// one.
const BITS: u64 = 1 << 29;

/// Hashes of keys, with a secret of its own.
#[derive(Default)]
pub struct Hashes(RandomState);

impl Hashes {
    pub fn of(&self, key: &IdentityKey) -> u64 {
        self.0.hash_one(key.as_str())
    }
}

/// Which hashes were seen once, and which perhaps more often.
#[derive(Default)]
pub struct DuplicateFilter {
    /// Empty until something is seen.
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

    /// Whether nothing was seen.
    pub const fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    /// The hashes that may have been seen more than once, but for the first time that a bit was
    /// set.
    pub fn into_repeated(self) -> HashSet<u64> {
        self.repeated
    }
}
