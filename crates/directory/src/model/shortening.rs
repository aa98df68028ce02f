//! Shorter retentions of history.

use std::time::Duration;

use locality_uuid::LocalityId;

use crate::clock::Now;
use crate::timestamp::Timestamp;

/// A retention of history that is shorter than that of some existing events.
#[derive(Clone, Copy, Debug)]
pub struct Shortening {
    /// The time for which history is kept.
    pub retention: Duration,
    /// The present time, which is certain.
    pub now: Timestamp,
}

/// A part of shortening the history of a tenant.
#[derive(Clone, Debug, Default)]
pub struct Shortened {
    /// The cursor of the next part; `None` at the end.
    pub next: Option<Vec<u8>>,
    /// Users whose records have expired events: they must be stored again.
    pub users: Vec<LocalityId>,
}

impl Shortening {
    /// Whether it applies to events of this time. Later ones follow the policies that were in
    /// force when they were written, which may have a longer retention again. The clock of another
    /// server may be a little ahead.
    pub fn covers(&self, time: Timestamp) -> bool {
        time <= self.now.plus(Now::TOLERANCE)
    }

    /// The time when an event of this time expires.
    pub fn removal(&self, time: Timestamp) -> Timestamp {
        time.plus(self.retention)
    }
}
