//! Commands that need no server.

pub mod completions;
pub mod id;
pub mod man;
pub mod openapi;
pub mod token;
