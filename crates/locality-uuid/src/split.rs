//! Cut points of the id space, so that a store can distribute ids over its shards before the first
//! arrives.

use super::id::LocalityId;

/// The `n - 1` ids that cut the space of all ids into `n` ranges of equal size, in order; none for
/// `n` of 0 or 1.
///
/// Each is the first id of its range. Where 2^128 is no multiple of `n`, the ranges differ by one
/// id at most.
///
/// ```
/// let points = locality_uuid::split_points(4);
/// let first_digits: Vec<u8> = points.iter().map(|id| id.as_bytes()[0]).collect();
/// assert_eq!(first_digits, [0x40, 0x80, 0xc0]);
/// ```
pub fn split_points(n: usize) -> Vec<LocalityId> {
    let ranges = n as u128;
    (1..ranges).map(|i| cut(i, ranges)).collect()
}

/// `i * 2^128 / n`, rounded down, for `0 < i < n`; `n` has at most 64 bits.
fn cut(i: u128, n: u128) -> LocalityId {
    // 2^128 does not fit, but it is MAX + 1: divide MAX and carry the one into the remainder.
    let (size, rest) = (u128::MAX / n, u128::MAX % n + 1);
    LocalityId::from((i * size + i * rest / n).to_be_bytes())
}
