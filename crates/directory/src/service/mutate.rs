//! Changes of users.

pub mod life;
pub mod mutation_log;
pub mod write;
