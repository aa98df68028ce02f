//! The inboxes of users.

pub mod contents;
pub mod entry;
pub mod inboxes;
pub mod store;
#[cfg(test)]
mod tests;
