//! The events of a store as they are committed.

use std::time::Duration;

use async_trait::async_trait;

use crate::error::{Error, Invalid};
use crate::model::event::Event;

/// A position between two events of a store. Only the store that gave it can read it.
pub type ResumeToken = Vec<u8>;

/// The error for a token that another store gave.
pub fn foreign_token() -> Error {
    let rule = "is of another store: begin without one";
    Error::invalid(Invalid::ResumeToken, "resume_token", rule)
}

/// Events in the order in which they were committed; those of one user in the order of their
/// numbers.
#[derive(Clone, Debug)]
pub struct FeedPage {
    /// The events, each with the token of the position after it. Some may come twice.
    pub events: Vec<(Event, ResumeToken)>,
    /// The position after all of them.
    pub resume_token: ResumeToken,
}

/// The events of a store, of all tenants.
#[async_trait]
pub trait EventFeed: Send + Sync + 'static {
    /// The position after all events that were committed so far.
    ///
    /// # Errors
    /// [`Error::WatchUnsupported`]; [`Error::Unavailable`] where the store does not answer.
    async fn position(&self) -> Result<ResumeToken, Error>;

    /// The events after a position. Waits at most `patience` for the first of them, and then
    /// answers without one.
    ///
    /// # Errors
    /// [`Error::Invalid`] where another store gave the token; [`Error::ResumeExpired`] where
    /// the events after it are gone; [`Error::WatchUnsupported`]; [`Error::Unavailable`].
    async fn events(&self, after: &ResumeToken, patience: Duration) -> Result<FeedPage, Error>;
}
