//! Notices: sending and reading them.

pub mod list;
pub mod merged;
pub mod send;
