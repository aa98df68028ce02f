//! The part of a store that is verified: all of it, a tenant, or a random part of either.

use polynym_directory::Tenant;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The part of a store that is verified; all of it by default.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// The only tenant whose records are checked.
    pub tenant: Option<Tenant>,
    /// The random part.
    pub sample: Option<Sample>,
}

impl Scope {
    /// Whether it is the whole store.
    pub const fn is_whole(&self) -> bool {
        self.tenant.is_none() && self.sample.is_none()
    }

    /// Whether the record with this key belongs to the random part.
    pub fn has(&self, key: &[u8]) -> bool {
        self.sample.is_none_or(|sample| sample.has(key))
    }

    /// About the number of these records that belong to the random part.
    pub(super) fn part_of(&self, records: u64) -> u64 {
        self.sample.map_or(records, |sample| (records as f64 * sample.share).ceil() as u64)
    }
}

/// A random part of all users, claims and ended ownerships: the same one for the same seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The seed.
    pub seed: u64,
    /// The probability of each record, up to 1.
    pub share: f64,
}

impl Sample {
    /// Whether the record with this key belongs to it.
    pub fn has(self, key: &[u8]) -> bool {
        xxh3_64_with_seed(key, self.seed) as f64 <= self.share * u64::MAX as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_about_its_share_and_depends_on_the_seed() {
        let keys: Vec<_> = (0..10_000_u32).map(u32::to_be_bytes).collect();
        let of = |seed, share| -> Vec<_> {
            let sample = Sample { seed, share };
            keys.iter().filter(|key| sample.has(*key)).collect()
        };
        assert!((900..1_100).contains(&of(7, 0.1).len()), "{}", of(7, 0.1).len());
        assert_eq!(of(7, 0.1), of(7, 0.1));
        assert_ne!(of(7, 0.1), of(8, 0.1));
        assert_eq!(of(7, 1.0).len(), keys.len());
        // A larger share has the smaller one.
        assert!(of(7, 0.1).iter().all(|key| of(7, 0.2).contains(key)));
    }
}
