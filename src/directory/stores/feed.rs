//! The interface of a store that tells of its events as they are committed.

use std::time::Duration;

use async_trait::async_trait;

use crate::directory::error::{Error, Invalid};
use crate::directory::model::event::Event;

/// A place between two events of a store. Only the store that gave it can read it.
pub type Place = Vec<u8>;

/// The error for a place that another store gave.
pub fn foreign_place() -> Error {
    let rule = "is of another store: begin without one";
    Error::invalid(Invalid::ResumeToken, "resume_token", rule)
}

/// Events in the order in which they were committed; those of one user in the order of their
/// numbers.
#[derive(Clone, Debug)]
pub struct FeedPage {
    /// The events, each with a place from which the next event follows. Some may come twice.
    pub events: Vec<(Event, Place)>,
    /// The place after all of them.
    pub place: Place,
}

/// The events of a store, of all tenants.
#[async_trait]
pub trait EventFeed: Send + Sync + 'static {
    /// The place after all events that were committed so far.
    ///
    /// # Errors
    /// [`Error::WatchUnsupported`]; [`Error::Unavailable`] where the store does not answer.
    async fn place(&self) -> Result<Place, Error>;

    /// The events after a place. Waits for the first of them as long as `patience` says, and then
    /// answers without one.
    ///
    /// # Errors
    /// [`Error::Invalid`] where the store has not given the place; [`Error::ResumeExpired`] where
    /// the events after it are gone; [`Error::WatchUnsupported`]; [`Error::Unavailable`].
    async fn events(&self, after: &Place, patience: Duration) -> Result<FeedPage, Error>;
}
