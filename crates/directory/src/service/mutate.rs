//! Changes of users.

pub mod life;
pub mod mutation_log;
pub(crate) mod request_hash;
pub mod write;
