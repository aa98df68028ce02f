//! The commands that run in the program itself: the server, and work on a store without a server.

pub mod serve;
pub mod store;
