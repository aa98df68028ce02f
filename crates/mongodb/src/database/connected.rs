//! The collections of an open store by its present connections.

use std::sync::Arc;
use std::time::Duration;

use mongodb::Database;

use crate::client::current::Current;
use crate::database::collections::Collections;

/// The longest time limit of a look-up that can be repeated elsewhere.
pub const SHORT_TIMEOUT: Duration = Duration::from_millis(500);

/// The collections of an open store by its present connections. An operation takes them once, and
/// keeps them to its end: a session belongs to one client.
#[derive(Clone)]
pub struct Connected {
    current: Current<ByTimeout>,
    has_short_timeout: bool,
}

/// The collections with the time limit of the store, and with a short one.
struct ByTimeout {
    full: Arc<Collections>,
    short: Arc<Collections>,
}

impl From<Collections> for ByTimeout {
    fn from(full: Collections) -> Self {
        let timeout = SHORT_TIMEOUT.min(full.timeout);
        let short = Arc::new(Collections { timeout, lateness: None, ..full.clone() });
        Self { full: Arc::new(full), short }
    }
}

impl Connected {
    /// The collections by their first connections.
    pub fn new(collections: Collections) -> Self {
        Self { current: Current::new(collections.into()), has_short_timeout: false }
    }

    /// The collections by the present connections.
    pub fn collections(&self) -> Arc<Collections> {
        self.of(&self.current.peek()).clone()
    }

    /// Whether these are the collections by the present connections.
    pub fn are_present(&self, collections: &Arc<Collections>) -> bool {
        Arc::ptr_eq(self.of(&self.current.peek()), collections)
    }

    const fn of<'a>(&self, current: &'a ByTimeout) -> &'a Arc<Collections> {
        if self.has_short_timeout { &current.short } else { &current.full }
    }

    /// The same with a time limit of half a second, for look-ups that have an answer to all keys or
    /// none.
    pub fn with_short_timeout(&self) -> Self {
        Self { has_short_timeout: true, ..self.clone() }
    }

    /// The same by the present connections alone, for operations that share a session.
    pub fn pinned(&self) -> Self {
        Self { current: self.current.pinned(), ..*self }
    }

    /// Replaces the connections. Those of before are closed once the last operation with them has
    /// ended.
    pub fn replace(&self, database: &Database) {
        self.current.replace(self.current.peek().full.by(database).into());
    }
}
