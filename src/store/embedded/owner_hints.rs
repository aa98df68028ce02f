//! Guesses of who owns a key, to save the look-up of its claim.
//!
//! A guess is only a place to look: the user's own record, read from the same snapshot, shows
//! whether it owns the key. So nothing here is kept in step with mutations, and threads share the
//! table without a lock: a guess that is old, or that two threads have written at once, is
//! recognised as wrong and costs one more look-up.

use std::sync::atomic::{AtomicU64, Ordering};

use locality_uuid::LocalityId;
use xxhash_rust::xxh3::xxh3_64;

use crate::identifier::IdentityKey;

/// The smallest table, in slots.
const LEAST: usize = 1 << 12;

pub struct OwnerHints {
    slots: Box<[Slot]>,
    most: usize,
}

/// The hash of a key, and the two halves of its owner's id. All zero where there is none.
#[derive(Default)]
struct Slot {
    hash: AtomicU64,
    id: [AtomicU64; 2],
}

impl OwnerHints {
    /// A table for `keys` keys that takes at most `bytes`. Room for twice as many keeps most
    /// guesses apart.
    pub fn new(keys: u64, bytes: usize) -> Self {
        let most = (bytes / size_of::<Slot>()).max(LEAST);
        let slots = usize::try_from(keys).unwrap_or(most).saturating_mul(2).clamp(LEAST, most);
        Self { slots: std::iter::repeat_with(Slot::default).take(slots).collect(), most }
    }

    /// Whether so many keys ask for a larger table.
    pub fn is_small_for(&self, keys: u64) -> bool {
        self.slots.len() < self.most && keys > self.slots.len() as u64
    }

    /// The probable owner of `key`.
    pub fn guess(&self, key: &IdentityKey) -> Option<LocalityId> {
        let hash = hash(key);
        let slot =
            self.pair(hash).into_iter().find(|slot| slot.hash.load(Ordering::Relaxed) == hash)?;
        let [high, low] = slot.id.each_ref().map(|half| half.load(Ordering::Relaxed));
        Some(LocalityId::from((u128::from(high) << 64 | u128::from(low)).to_be_bytes()))
    }

    /// Remembers who owns `key`, in the place of something else if need be.
    pub fn learn(&self, key: &IdentityKey, owner: LocalityId) {
        let hash = hash(key);
        let [first, second] = self.pair(hash);
        let takes = |slot: &Slot| {
            matches!(slot.hash.load(Ordering::Relaxed), 0)
                || slot.hash.load(Ordering::Relaxed) == hash
        };
        let slot = if takes(first) || (!takes(second) && hash & 2 == 0) { first } else { second };
        let id = u128::from_be_bytes(*owner.as_bytes());
        slot.id[0].store((id >> 64) as u64, Ordering::Relaxed);
        slot.id[1].store(id as u64, Ordering::Relaxed);
        slot.hash.store(hash, Ordering::Relaxed);
    }

    /// The two slots that a key may have.
    fn pair(&self, hash: u64) -> [&Slot; 2] {
        let place = ((u128::from(hash) * self.slots.len() as u128) >> 64) as usize;
        [&self.slots[place], &self.slots[(place + 1) % self.slots.len()]]
    }
}

/// Never zero, which marks an empty slot.
fn hash(key: &IdentityKey) -> u64 {
    xxh3_64(key.as_str().as_bytes()) | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identifier::{Identifier, RawIdentifier};

    fn key(n: u64) -> IdentityKey {
        let handle = format!("user{n}");
        IdentityKey::new("default", &Identifier::parse(RawIdentifier::Handle(&handle)).unwrap())
    }

    fn id(n: u64) -> LocalityId {
        LocalityId::from(u128::from(n + 1).to_be_bytes())
    }

    #[test]
    fn most_of_what_was_learned_is_guessed() {
        let hints = OwnerHints::new(10_000, usize::MAX);
        assert!((0..10_000).all(|n| hints.guess(&key(n)).is_none()));
        (0..10_000).for_each(|n| hints.learn(&key(n), id(n)));
        let right = (0..10_000).filter(|n| hints.guess(&key(*n)) == Some(id(*n))).count();
        assert!(right > 8_500, "{right}");
    }

    #[test]
    fn a_later_owner_takes_the_place_of_an_earlier_one() {
        let hints = OwnerHints::new(0, 0);
        hints.learn(&key(1), id(1));
        hints.learn(&key(1), id(2));
        assert_eq!(hints.guess(&key(1)), Some(id(2)));
    }

    #[test]
    fn a_table_grows_with_its_keys_to_its_bound() {
        assert!(OwnerHints::new(0, usize::MAX).is_small_for(LEAST as u64 + 1));
        assert!(!OwnerHints::new(0, 0).is_small_for(u64::MAX));
    }
}
