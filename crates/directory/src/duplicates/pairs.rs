//! The best pairs of a search, each once.

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

/// A pair with what a person compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedPair {
    /// The pair.
    pub pair: DuplicatePair,
    /// The display name of each user.
    pub display_names: [String; 2],
    /// For each reason, the matching value of each user; empty if a user has changed or was read
    /// without it.
    pub values: Vec<[String; 2]>,
}

/// The best pairs so far.
#[derive(Debug, Default)]
pub struct DuplicatePairs {
    pairs: HashMap<[LocalityId; 2], Match>,
    limit: usize,
}

impl DuplicatePairs {
    /// Keeps at most `limit` pairs, and temporarily twice as many.
    pub fn new(limit: usize) -> Self {
        Self { pairs: HashMap::new(), limit }
    }

    /// Adds a pair. If it exists, the better reasons stay.
    pub fn add(&mut self, DuplicatePair { users, found }: DuplicatePair) {
        let best = self.pairs.entry(users).or_default();
        if found.score > best.score {
            *best = found;
        }
        if self.pairs.len() > 2 * self.limit {
            let all = std::mem::replace(self, Self::new(self.limit));
            self.pairs = all.into_best().into_iter().map(|pair| (pair.users, pair.found)).collect();
        }
    }

    /// The best pairs, sorted by score and ids.
    pub fn into_best(self) -> Vec<DuplicatePair> {
        let pair = |(users, found)| DuplicatePair { users, found };
        let mut pairs: Vec<_> = self.pairs.into_iter().map(pair).collect();
        pairs.sort_unstable_by_key(|pair| (Reverse(pair.found.score), pair.users));
        pairs.truncate(self.limit);
        pairs
    }
}
