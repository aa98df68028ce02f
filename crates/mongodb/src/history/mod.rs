//! Histories of users and tenants, and ended ownerships.

pub mod ended;
pub mod journal;
mod pasts;
pub mod read;
pub mod shorten;
pub mod tenant_journal;
