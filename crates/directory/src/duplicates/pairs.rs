//! The pairs that a search found: the best ones, each once.

use std::cmp::Reverse;
use std::collections::HashMap;

use locality_uuid::LocalityId;

use super::evidence::Match;

/// Two users who may be the same person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicatePair {
    /// Their ids, the lesser one first.
    pub users: [LocalityId; 2],
    /// The reasons.
    pub found: Match,
}

/// The best pairs so far.
#[derive(Debug, Default)]
pub struct DuplicatePairs {
    pairs: HashMap<[LocalityId; 2], Match>,
    limit: usize,
}

impl DuplicatePairs {
    /// Keeps at most this many pairs, and for a while twice as many.
    pub fn new(limit: usize) -> Self {
        Self { pairs: HashMap::new(), limit }
    }

    /// Adds a pair. Where it is there, the better reasons stay.
    pub fn add(&mut self, pair: DuplicatePair) {
        let DuplicatePair { users, found } = pair;
        let kept = self.pairs.entry(users).or_default();
        if found.score > kept.score {
            *kept = found;
        }
        if self.pairs.len() > 2 * self.limit {
            let limit = self.limit;
            let best = std::mem::replace(self, Self::new(limit)).into_best();
            self.pairs = best.into_iter().map(|pair| (pair.users, pair.found)).collect();
        }
    }

    /// The best pairs, the best one first and equally good ones by their ids.
    pub fn into_best(self) -> Vec<DuplicatePair> {
        let pairs = self.pairs.into_iter();
        let mut pairs: Vec<_> =
            pairs.map(|(users, found)| DuplicatePair { users, found }).collect();
        pairs.sort_unstable_by_key(|pair| (Reverse(pair.found.score), pair.users));
        pairs.truncate(self.limit);
        pairs
    }
}
