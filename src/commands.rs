//! What the program does itself: serving, and the work on a store without a server.

pub mod serve;
pub mod store;
