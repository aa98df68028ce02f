//! Changes of users.

pub mod life;
pub mod mutation_log;
mod request_hash;
pub mod write;
