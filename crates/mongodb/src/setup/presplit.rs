//! The initial ranges of users and requests, and the shards of the initial hashes of claims, so
//! that all shards work from the start. Pure: `cluster` executes it.

use locality_uuid::{LocalityId, split_points};
use mongodb::bson::Bson;

use crate::inbox::row::row_id;
use crate::schema::bson::id_value;
use crate::schema::tail::bucket_id;

/// The ranges of ids for each shard: a shard that is added later gets whole ranges.
const RANGES_OF_IDS: usize = 4;

/// The first key of a range, and the index of its shard.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    pub start: Bson,
    pub shard: usize,
}

/// The keys before the first range.
pub const FIRST: Range = Range { start: Bson::MinKey, shard: 0 };

/// The ranges of a collection whose ids are spread evenly. Neighbours are on different shards, so
/// that MongoDB does not merge them.
pub fn of_ids(shards: usize) -> Vec<Range> {
    ranges(shards, id_value)
}

/// The ranges of buckets, which are on the shards of their users.
pub fn of_buckets(shards: usize) -> Vec<Range> {
    ranges(shards, |id| bucket_id(id, 0))
}

/// The ranges of rows of inboxes, which are on the shards of their users.
pub fn of_rows(shards: usize) -> Vec<Range> {
    ranges(shards, |id| row_id(id, 0))
}

fn ranges(shards: usize, key: impl Fn(LocalityId) -> Bson) -> Vec<Range> {
    let starts = split_points(shards * RANGES_OF_IDS).into_iter().zip(1..);
    starts.map(|(id, n)| Range { start: key(id), shard: n % shards }).collect()
}

/// A chunk of a collection that is sharded on hashes, which are integers of 64 bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Hashes {
    /// The least hash, or `MinKey`.
    pub start: Bson,
    /// The first hash of the next chunk, or `MaxKey`.
    pub end: Bson,
    /// The index of its shard.
    pub shard: usize,
}

/// A step that gives hashes to a shard without any.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Split a chunk at this hash.
    Split(i64),
    /// Move the chunk that begins here to the shard with this index.
    Move(Bson, usize),
}

/// The next step towards hashes on every shard; `None` if each has some. The shard with the most
/// gives up its widest chunk, or half of its only one.
pub fn next_step(chunks: &[Hashes], shards: usize) -> Option<Step> {
    let of = |shard| chunks.iter().filter(move |chunk| chunk.shard == shard);
    let empty = (0..shards).find(|shard| of(*shard).next().is_none())?;
    let richest = (0..shards).max_by_key(|shard| of(*shard).map(Hashes::width).sum::<i128>())?;
    let widest = of(richest).max_by_key(|chunk| chunk.width())?;
    let is_only = of(richest).count() == 1;
    Some(if is_only {
        Step::Split(widest.middle())
    } else {
        Step::Move(widest.start.clone(), empty)
    })
}

impl Hashes {
    fn bounds(&self) -> (i128, i128) {
        let bound = |bound: &Bson, open: i64| i128::from(bound.as_i64().unwrap_or(open));
        (bound(&self.start, i64::MIN), bound(&self.end, i64::MAX))
    }

    fn width(&self) -> i128 {
        let (start, end) = self.bounds();
        end - start
    }

    fn middle(&self) -> i64 {
        let (start, end) = self.bounds();
        ((start + end) / 2) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARDS: [usize; 6] = [1, 2, 3, 5, 10, 50];

    #[test]
    fn ranges_of_ids_ascend_and_are_on_every_shard() {
        for shards in SHARDS {
            let mut count = vec![0; shards];
            // Values below the first range belong to shard 0.
            count[0] = 1;
            of_ids(shards).iter().for_each(|range| count[range.shard] += 1);
            assert!(count.iter().all(|count| *count == RANGES_OF_IDS), "{count:?}");
        }
    }

    /// One chunk with all hashes.
    fn whole(shard: usize) -> Vec<Hashes> {
        vec![Hashes { start: Bson::MinKey, end: Bson::MaxKey, shard }]
    }

    /// Executes all steps. Returns their number.
    fn execute(chunks: &mut Vec<Hashes>, shards: usize) -> usize {
        let mut steps = 0;
        while let Some(step) = next_step(chunks, shards) {
            steps += 1;
            match step {
                Step::Split(at) => {
                    let is_in = |chunk: &&mut Hashes| {
                        (chunk.bounds().0 + 1..chunk.bounds().1).contains(&at.into())
                    };
                    let chunk = chunks.iter_mut().find(is_in).expect("a chunk that holds it");
                    let after =
                        Hashes { start: at.into(), end: chunk.end.clone(), shard: chunk.shard };
                    chunk.end = at.into();
                    chunks.push(after);
                }
                Step::Move(start, to) => {
                    let chunk = chunks
                        .iter_mut()
                        .find(|chunk| chunk.start == start)
                        .expect("a chunk that begins there");
                    assert_ne!(chunk.shard, to);
                    chunk.shard = to;
                }
            }
        }
        steps
    }

    #[test]
    fn every_shard_gets_hashes() {
        for shards in SHARDS {
            let mut chunks = whole(shards - 1);
            let steps = execute(&mut chunks, shards);
            assert_eq!(steps, 2 * (shards - 1), "{shards}");
            let widths: Vec<i128> = (0..shards)
                .map(|shard| {
                    chunks.iter().filter(|chunk| chunk.shard == shard).map(Hashes::width).sum()
                })
                .collect();
            assert_eq!(widths.iter().sum::<i128>(), i128::from(u64::MAX), "{widths:?}");
            let (least, most) = (widths.iter().min().unwrap(), widths.iter().max().unwrap());
            assert!(*least > 0 && *most <= 2 * least + 2, "{widths:?}");
            assert_eq!(execute(&mut chunks, shards), 0);
        }
    }

    #[test]
    fn a_new_shard_gets_a_whole_chunk_where_others_have_two() {
        let third = i64::MAX / 3;
        let bounds: Vec<Bson> = [-2, -1, 0, 1, 2].iter().map(|n| Bson::Int64(n * third)).collect();
        let starts = [Bson::MinKey].into_iter().chain(bounds.iter().cloned());
        let ends = bounds.iter().cloned().chain([Bson::MaxKey]);
        let chunks: Vec<_> = starts
            .zip(ends)
            .zip([0, 0, 1, 1, 2, 2])
            .map(|((start, end), shard)| Hashes { start, end, shard })
            .collect();
        assert_eq!(next_step(&chunks, 3), None);
        assert!(matches!(next_step(&chunks, 4), Some(Step::Move(_, 3))));
    }
}
