//! Inboxes.

pub mod bucket;
pub mod inboxes;
pub mod store;
