//! The users of each key, in bounded memory: if a tenant's keys do not fit, the index takes them in
//! successive ranges, and the tenant is read once for each.

use locality_uuid::LocalityId;

use super::profile::Key;

/// The users of the keys in one range.
#[derive(Debug)]
pub struct KeyIndex {
    entries: Vec<(Key, LocalityId)>,
    limit: usize,
    range: (Key, Key),
    /// The start of the next group.
    next: usize,
}

/// An index without room for entries.
impl Default for KeyIndex {
    fn default() -> Self {
        Self::new(0)
    }
}

impl KeyIndex {
    /// An index of at most `limit` entries, of 24 bytes each.
    pub fn new(limit: usize) -> Self {
        Self { entries: Vec::new(), limit, range: (Key::MIN, Key::MAX), next: 0 }
    }

    /// Adds a user, unless its key is outside of the range. If the index is full, it halves the
    /// range.
    pub fn add(&mut self, key: Key, user: LocalityId) {
        let (first, last) = self.range;
        if !(first..=last).contains(&key) {
            return;
        }
        if self.entries.len() < self.limit {
            self.entries.push((key, user));
        } else if let Some(middle) = first.halfway(last) {
            self.range = (first, middle);
            self.entries.retain(|(key, _)| *key <= middle);
            self.add(key, user);
        }
    }

    /// Sorts the entries, so that groups can be read.
    pub fn sort(&mut self) {
        self.entries.sort_unstable();
        self.entries.dedup();
        self.next = 0;
    }

    /// The users of the next key that several users share, sorted by id.
    pub fn next_group(&mut self) -> Option<&[(Key, LocalityId)]> {
        while let Some((key, _)) = self.entries.get(self.next) {
            let start = self.next;
            let len = self.entries[start..].partition_point(|(other, _)| other == key);
            self.next += len;
            if len > 1 {
                return Some(&self.entries[start..self.next]);
            }
        }
        None
    }

    /// Moves to the next range. Returns whether there is one.
    pub fn next_range(&mut self) -> bool {
        self.entries.clear();
        self.next = 0;
        match self.range.1.following() {
            Some(first) => {
                self.range = (first, Key::MAX);
                true
            }
            None => false,
        }
    }
}
