//! Inboxes.

pub mod inboxes;
pub mod moves;
pub mod row;
pub mod store;
