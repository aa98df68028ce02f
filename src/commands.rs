//! The commands that need stores: the server, and work on a store without a server.

pub mod serve;
pub mod store;
