//! Inboxes.

pub mod inboxes;
pub mod row;
pub mod store;
