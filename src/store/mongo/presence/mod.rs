//! The servers of a store: each beats in a document of its own, and ends the sessions of dead ones.

pub mod dead;
pub mod heartbeat;
pub mod servers;
pub mod sessions;
