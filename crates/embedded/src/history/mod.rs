//! The histories of users and tenants: how events are written, read, followed and removed.

pub mod feed;
pub mod journal;
mod newest;
pub mod read;
pub mod shorten;
pub mod strays;
