//! Shorter retentions of history.

use std::time::Duration;

use locality_uuid::LocalityId;

use super::timestamp::Timestamp;

/// A retention of history that is shorter than the one under which some of it was written.
#[derive(Clone, Copy, Debug)]
pub struct Shortening {
    /// For how long history is kept.
    pub retention: Duration,
    /// The present time, which is certain.
    pub now: Timestamp,
}

/// A part of shortening the history of a tenant.
#[derive(Clone, Debug, Default)]
pub struct Shortened {
    /// The place at which the next part begins; none at the end.
    pub next: Option<Vec<u8>>,
    /// Users whose records have events that are over age: they are to be stored again.
    pub users: Vec<LocalityId>,
}

impl Shortening {
    /// When what is of this time is to be removed.
    pub fn removal(&self, time: Timestamp) -> Timestamp {
        time.plus(self.retention)
    }
}
