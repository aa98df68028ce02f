//! Mutations: the writer's thread, its transactions, and its recovery after a failed write.

pub mod degraded;
pub mod journal;
pub mod recovery;
pub mod sweep;
pub mod transaction;
pub mod users;
pub mod writer;
