//! Histories of users and tenants, and ended ownerships.

pub mod ended;
pub mod journal;
pub mod newest;
mod pasts;
pub mod read;
pub mod shorten;
pub mod tenant_journal;
