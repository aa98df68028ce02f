//! The users of each key, in bounded memory: where a tenant has more keys than fit, they are taken
//! in several ranges, one after the other, and the tenant is read once for each.

use locality_uuid::LocalityId;

use super::profile::Key;

/// The users of the keys in one range.
#[derive(Debug)]
pub struct KeyIndex {
    entries: Vec<(Key, LocalityId)>,
    limit: usize,
    range: (Key, Key),
    /// The group that comes next.
    next: usize,
}

/// Holds no entry.
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

    /// Adds a user, unless its key is in a later range. Where there are too many entries, the range
    /// becomes smaller.
    pub fn add(&mut self, key: Key, user: LocalityId) {
        let (least, most) = self.range;
        if !(least..=most).contains(&key) {
            return;
        }
        if self.entries.len() < self.limit {
            self.entries.push((key, user));
            return;
        }
        let Some(most) = least.halfway(most) else {
            return;
        };
        self.range = (least, most);
        self.entries.retain(|(key, _)| *key <= most);
        self.add(key, user);
    }

    /// Sorts the entries, so that groups can be read.
    pub fn sort(&mut self) {
        self.entries.sort_unstable();
        self.entries.dedup();
        self.next = 0;
    }

    /// The next key that several users have, with all of them in the order of their ids.
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

    /// Goes on to the next range. Returns whether there is one.
    pub fn next_range(&mut self) -> bool {
        self.entries.clear();
        self.next = 0;
        match self.range.1.following() {
            Some(least) => {
                self.range = (least, Key::MAX);
                true
            }
            None => false,
        }
    }
}
