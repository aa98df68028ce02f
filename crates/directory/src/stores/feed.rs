//! The event feed of a store.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::error::{Error, Invalid};
use crate::model::event::Event;
use crate::model::tenant::Tenant;

/// A position between two events of a store. Only the store that issued it can read it.
pub type ResumeToken = Vec<u8>;

/// The error for a token of another store.
pub fn foreign_token() -> Error {
    let rule = "belongs to another store: begin without one";
    Error::invalid(Invalid::ResumeToken, "resume_token", rule)
}

/// Events in commit order; the events of one user in the order of their sequence numbers.
#[derive(Clone, Debug)]
pub struct FeedPage {
    /// The events, each with the position after it. Some may occur twice.
    pub events: Vec<(Arc<Event>, ResumeToken)>,
    /// The position after all events.
    pub resume_token: ResumeToken,
}

/// The events of a store. A watcher of one tenant is not woken by the events of others.
#[async_trait]
pub trait EventFeed: Send + Sync + 'static {
    /// The position after all committed events.
    ///
    /// # Errors
    /// [`Error::WatchUnsupported`]; [`Error::Unavailable`] if the store does not answer.
    async fn position(&self) -> Result<ResumeToken, Error>;

    /// The events of a tenant after a position. Waits up to `timeout` for the first one, and then
    /// returns none.
    ///
    /// # Errors
    /// [`Error::Invalid`] if another store issued the token; [`Error::ResumeExpired`] if the
    /// events after it are gone; [`Error::WatchUnsupported`]; [`Error::Unavailable`].
    async fn events(
        &self,
        tenant: &Tenant,
        after: &ResumeToken,
        timeout: Duration,
    ) -> Result<FeedPage, Error>;
}
