//! Parts of the histories of users, as mutations read them.

use locality_uuid::LocalityId;

use crate::model::event::Event;

/// A part of the history of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HistoryPart {
    /// The user.
    pub user: LocalityId,
    /// The [cursor](HistoryEvents::next) of an earlier part; `None` for the newest events.
    pub cursor: Option<u64>,
    /// The most events.
    pub limit: usize,
}

impl HistoryPart {
    /// The bytes of an event, and of a part, that a purge has room for.
    const EVENT_BYTES: usize = 4 << 10;
    const MAX_BYTES: usize = 4 << 20;

    /// The most bytes of the part, unless its first event has more. A purge that shares its events
    /// among many parts shares its bytes, too.
    pub fn max_bytes(self) -> usize {
        self.limit.saturating_mul(Self::EVENT_BYTES).min(Self::MAX_BYTES)
    }
}

/// The events of a [part](HistoryPart) of a history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistoryEvents {
    /// The events, the newest first, without those that cannot be read.
    pub events: Vec<Event>,
    /// Whether there are events that cannot be read.
    pub is_damaged: bool,
    /// The cursor of the next part; `None` at the end.
    pub next: Option<u64>,
}
