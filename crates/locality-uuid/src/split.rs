//! Split points of the id space, for stores that create shards in advance.

use super::id::LocalityId;

/// The `n - 1` ids that split the space of all ids into `n` equal ranges, in order; none for `n` of
/// 0 or 1.
///
/// Each is the first id of its range. Ranges differ by at most one id.
///
/// ```
/// let points = locality_uuid::split_points(4);
/// let first_digits: Vec<u8> = points.iter().map(|id| id.as_bytes()[0]).collect();
/// assert_eq!(first_digits, [0x40, 0x80, 0xc0]);
/// ```
pub fn split_points(n: usize) -> Vec<LocalityId> {
    let ranges = n as u128;
    (1..ranges).map(|i| split_point(i, ranges)).collect()
}

/// `i * 2^128 / n`, rounded down, for `0 < i < n`; `n` has at most 64 bits.
fn split_point(i: u128, n: u128) -> LocalityId {
    // 2^128 is MAX + 1: divide MAX, and add the one to the remainder.
    let (size, rest) = (u128::MAX / n, u128::MAX % n + 1);
    LocalityId::from((i * size + i * rest / n).to_be_bytes())
}
