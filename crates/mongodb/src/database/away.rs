//! The ids that a shard that hangs does not answer, as far as finds have shown it.
//!
//! A shard owns ranges of users' ids, and of the hashes of keys. So ids are counted in 4,096 ranges
//! of each: one is away if an id of it was given up and none was answered since. A range of which
//! nothing is known is like the ranges nearby, if these agree.

use std::ops::Range;

use mongodb::bson::{Bson, RawBsonRef};

use crate::schema::hash::hash;

/// The ranges of each collection: those of users, then those of keys.
const RANGES: usize = 4_096;
/// The number of ranges to either side for which a range speaks.
const REACH: usize = 32;
/// A range is on two shards if an id is given up this soon after another was answered, in
/// microseconds.
const ON_TWO_SHARDS: u64 = 1_000_000;
/// The least time between two probes of a range, in microseconds.
const PROBE_INTERVAL: u64 = 500_000;

/// The times of the finds of a range: of the latest answer, of the latest id that was given up, and
/// of the latest probe, in microseconds; 0 for never.
#[derive(Clone, Copy, Default)]
struct Finds {
    answered: u64,
    given_up: u64,
    probed: u64,
}

impl Finds {
    /// Whether the range is away; `None` if nothing shows it.
    fn is_away(&self) -> Option<bool> {
        match (self.answered, self.given_up) {
            (0, 0) => None,
            (0, _) => Some(true),
            (answered, given_up) => Some(given_up > answered + ON_TWO_SHARDS),
        }
    }
}

/// The ranges of all ids.
#[derive(Default)]
pub struct Away {
    /// Empty until an id is given up.
    ranges: Vec<Finds>,
}

impl Away {
    /// Forgets all ranges.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Records that an id of a range was given up at a time.
    pub fn gave_up(&mut self, index: usize, now: u64) {
        self.ranges.resize(2 * RANGES, Finds::default());
        self.ranges[index].given_up = now;
    }

    /// Records that an id of a range was answered: nothing is known any more of what was away
    /// around it.
    pub fn answered(&mut self, index: usize, now: u64) {
        let was_away = self.contains(index);
        let Some(range) = self.ranges.get_mut(index) else { return };
        range.answered = now;
        if was_away {
            for near in nearby(index) {
                if self.ranges[near].is_away() == Some(true) {
                    self.ranges[near] = Finds::default();
                }
            }
        }
    }

    /// Whether the ids of a range are away.
    pub fn contains(&self, index: usize) -> bool {
        let Some(range) = self.ranges.get(index) else { return false };
        range.is_away().unwrap_or_else(|| {
            let (near, known) = (nearby(index), |n: usize| self.ranges[n].is_away());
            let before = (near.start..index).rev().find_map(known);
            let after = (index + 1..near.end).find_map(known);
            matches!((before, after), (Some(true), None | Some(true)) | (None, Some(true)))
        })
    }

    /// Whether an id of a range that is away is to be probed at a time. Records the probe.
    pub fn begin_probe(&mut self, index: usize, now: u64) -> bool {
        let Some(range) = self.ranges.get_mut(index) else { return false };
        let is_due = now >= range.probed + PROBE_INTERVAL;
        if is_due {
            range.probed = now;
        }
        is_due
    }
}

/// The ranges near a range, of the same collection.
fn nearby(index: usize) -> Range<usize> {
    let first = index / RANGES * RANGES;
    index.saturating_sub(REACH).max(first)..(index + REACH + 1).min(first + RANGES)
}

/// The range of an id of a user, or of a key.
pub fn range_of(id: &Bson) -> usize {
    let (first, position) = match id {
        Bson::Binary(id) => {
            let mut start = [0; 8];
            start.iter_mut().zip(&id.bytes).for_each(|(to, byte)| *to = *byte);
            (0, u64::from_be_bytes(start))
        }
        Bson::String(key) => (RANGES, hash_of(key).cast_unsigned() ^ 1 << 63),
        _ => (RANGES, 0),
    };
    first + (position / (u64::MAX / RANGES as u64 + 1)) as usize
}

fn hash_of(key: &str) -> i64 {
    hash(RawBsonRef::String(key)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use mongodb::bson::Binary;
    use mongodb::bson::spec::BinarySubtype;

    use super::*;

    const SECOND: u64 = 1_000_000;

    /// The first id of a range of users.
    fn first_id(range: u16) -> Bson {
        let mut bytes = vec![0; 16];
        bytes[..2].copy_from_slice(&(range << 4).to_be_bytes());
        Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes })
    }

    fn gave_up(ranges: &[usize]) -> Away {
        let mut away = Away::default();
        ranges.iter().for_each(|range| away.gave_up(*range, SECOND));
        away
    }

    #[test]
    fn ids_and_hashes_are_spread_over_ranges_in_their_order() {
        assert_eq!([0, 1, 4_095].map(|n| range_of(&first_id(n))), [0, 1, 4_095]);
        let keys = (0..1_000).map(|n| format!("default,handle,user{n}"));
        let mut keys: Vec<_> = keys.map(|key| (hash_of(&key), Bson::String(key))).collect();
        keys.sort_unstable_by_key(|(hash, _)| *hash);
        let ranges: Vec<_> = keys.iter().map(|(_, key)| range_of(key)).collect();
        assert!(ranges.is_sorted() && ranges[0] >= RANGES && ranges[999] < 2 * RANGES);
        assert!(ranges[0] < RANGES + 50 && ranges[999] > 2 * RANGES - 50);
    }

    #[test]
    fn a_hash_is_that_of_mongodb() {
        assert_eq!(hash_of("default,email,joe@example.com"), 6_172_380_070_534_764_253);
    }

    #[test]
    fn a_range_is_away_from_an_id_that_was_given_up_until_an_answer() {
        let mut away = gave_up(&[7]);
        assert!(away.contains(7));
        away.answered(7, 2 * SECOND);
        assert!(!away.contains(7));
    }

    #[test]
    fn an_unknown_range_is_like_those_nearby() {
        let mut away = gave_up(&[100, 110, 180]);
        let is_away = |away: &Away, ranges: &[usize]| {
            ranges.iter().map(|n| away.contains(*n)).collect::<Vec<_>>()
        };
        let found = is_away(&away, &[67, 68, 105, 142, 145, 212, 213]);
        assert_eq!(found, [false, true, true, true, false, true, false]);
        away.answered(141, 2 * SECOND);
        let found = is_away(&away, &[100, 110, 130, 141, 145, 180]);
        assert_eq!(found, [true, false, false, false, false, true]);
        away.answered(107, 3 * SECOND);
        assert_eq!(is_away(&away, &[75, 100, 180]), [false, false, true]);
    }

    #[test]
    fn a_range_on_two_shards_is_not_away() {
        let mut away = gave_up(&[1]);
        away.answered(7, 2 * SECOND);
        away.gave_up(7, 3 * SECOND);
        assert!(!away.contains(7));
        away.gave_up(7, 3 * SECOND + 1);
        assert!(away.contains(7));
    }

    #[test]
    fn collections_do_not_speak_for_each_other() {
        let mut away = gave_up(&[4_090, 4_095]);
        away.answered(RANGES, 2 * SECOND);
        assert!(away.contains(4_095));
    }

    #[test]
    fn a_range_is_probed_twice_a_second() {
        let mut away = gave_up(&[7]);
        assert!(away.begin_probe(7, SECOND));
        assert!(!away.begin_probe(7, SECOND + PROBE_INTERVAL - 1));
        assert!(away.begin_probe(7, SECOND + PROBE_INTERVAL));
    }
}
