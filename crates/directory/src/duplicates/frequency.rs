//! The numbers of users that share a name, or an address in an attribute. A common value is weak
//! evidence.

/// Counts of hashes, at eight bytes for each addition.
#[derive(Debug, Default)]
pub struct Frequencies(Vec<u64>);

impl Frequencies {
    /// Counts a hash.
    pub fn add(&mut self, hash: u64) {
        self.0.push(hash);
    }

    /// Sorts the hashes. Required before [`count`](Self::count).
    pub fn sort(&mut self) {
        self.0.sort_unstable();
        self.0.shrink_to_fit();
    }

    /// The number of times that a hash was added.
    pub fn count(&self, hash: u64) -> usize {
        let from = self.0.partition_point(|other| *other < hash);
        self.0[from..].partition_point(|other| *other == hash)
    }
}
