//! The running servers of a store: each renews a document of its own, and ends the sessions of dead
//! servers.

pub mod dead;
pub mod expiry_leader;
pub mod heartbeat;
pub mod servers;
pub mod sessions;
