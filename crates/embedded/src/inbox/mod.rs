//! The inboxes of users.

pub mod inboxes;
pub mod store;
