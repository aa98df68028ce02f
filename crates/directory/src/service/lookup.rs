//! Look-ups of users by identities and ids.

pub mod as_of;
mod earlier_forms;
pub mod merge_redirects;
pub mod owners;
pub mod read;
