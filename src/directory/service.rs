//! The operations of the API, and the background tasks of a server.

pub mod admin;
pub mod deletion;
pub mod expiry;
pub mod life;
pub mod merge_redirects;
pub mod moving;
pub mod read;
pub mod runs;
pub mod tenant_cache;
pub mod write;
