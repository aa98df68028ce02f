//! The number of users in one read of the store.

use crate::stores::ANSWER_BYTES;

/// The number of users in the next read, which follows their mean size: a read has about
/// [`ANSWER_BYTES`].
pub(super) struct ReadSize {
    users: usize,
    max: usize,
}

impl ReadSize {
    /// Begins with reads of `first` users, and reads at most `max`.
    pub(super) const fn new(first: usize, max: usize) -> Self {
        Self { users: first, max }
    }

    pub(super) const fn users(&self) -> usize {
        self.users
    }

    /// Adapts to a read of this many users with this many bytes.
    pub(super) fn adapt(&mut self, users: usize, bytes: usize) {
        let mean = bytes.checked_div(users).unwrap_or_default();
        self.users = ANSWER_BYTES.checked_div(mean).unwrap_or(self.max).clamp(1, self.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_large_users_have_few() {
        let mut size = ReadSize::new(50, 200);
        assert_eq!(size.users(), 50);
        size.adapt(50, 50 << 20);
        assert_eq!(size.users(), 3);
        size.adapt(1, 8 << 20);
        assert_eq!(size.users(), 1);
        size.adapt(3, 3 * 500);
        assert_eq!(size.users(), 200);
        size.adapt(0, 0);
        assert_eq!(size.users(), 200);
    }
}
