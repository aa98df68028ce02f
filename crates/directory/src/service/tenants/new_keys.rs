//! The keys that identities would get from other rules, to find those that collide.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use locality_uuid::LocalityId;
use polynym_identifier::IdentityKey;
use xxhash_rust::xxh3::xxh3_128;

/// New keys, each with the user who would get it. It has their hashes alone, and if these are too
/// many, those of one range: the users are then read once for each range.
pub struct NewKeys {
    users: HashMap<u128, LocalityId>,
    /// The hashes that are kept now.
    range: RangeInclusive<u128>,
    limit: usize,
}

impl NewKeys {
    /// Keeps at most `limit` keys at once.
    pub fn new(limit: usize) -> Self {
        Self { users: HashMap::new(), range: 0..=u128::MAX, limit: limit.max(1) }
    }

    /// Adds the key of a user, if it is in the present range. Returns the user who had it before.
    pub fn insert(&mut self, key: &IdentityKey, user: LocalityId) -> Option<LocalityId> {
        let hash = xxh3_128(key.as_str().as_bytes());
        if !self.range.contains(&hash) {
            return None;
        }
        let before = self.users.insert(hash, user);
        while self.users.len() > self.limit {
            let (start, end) = (*self.range.start(), *self.range.end());
            self.range = start..=start + (end - start) / 2;
            self.users.retain(|hash, _| self.range.contains(hash));
        }
        before
    }

    /// Whether the present range is not the first one.
    pub const fn is_later_range(&self) -> bool {
        *self.range.start() > 0
    }

    /// Goes on to the next range. Returns false if there is none.
    pub fn next_range(&mut self) -> bool {
        let end = *self.range.end();
        self.users.clear();
        if end < u128::MAX {
            self.range = end + 1..=u128::MAX;
        }
        end < u128::MAX
    }
}

#[cfg(test)]
mod tests {
    use polynym_identifier::{Identifier, Kind};

    use super::*;

    fn id(n: usize) -> LocalityId {
        LocalityId::from((n as u128).to_be_bytes())
    }

    /// The collisions among keys, by reading them once for each range, and the number of ranges.
    fn collisions(keys: &[IdentityKey], limit: usize) -> (Vec<(usize, usize)>, usize) {
        let (mut new_keys, mut found, mut ranges) = (NewKeys::new(limit), Vec::new(), 1);
        loop {
            for (n, key) in keys.iter().enumerate() {
                let before = new_keys.insert(key, id(n));
                let position = |user| (0..keys.len()).find(|n| id(*n) == user);
                found.extend(before.and_then(position).map(|before| (before, n)));
                assert!(new_keys.users.len() <= limit);
            }
            if !new_keys.next_range() {
                found.sort_unstable();
                return (found, ranges);
            }
            ranges += 1;
        }
    }

    #[test]
    fn each_collision_is_found_once_within_the_limit() {
        let key = |n: usize| {
            let identifier = Identifier::from_canonical(Kind::Handle, n.to_string());
            IdentityKey::new("default", &identifier)
        };
        let keys: Vec<_> = (0..1_000).map(|n| key(n % 990)).collect();
        let wanted: Vec<_> = (0..10).map(|n| (n, n + 990)).collect();
        assert_eq!(collisions(&keys, 10_000), (wanted.clone(), 1));
        let (found, ranges) = collisions(&keys, 100);
        assert_eq!(found, wanted);
        assert!((10..40).contains(&ranges), "{ranges} ranges");
    }
}
