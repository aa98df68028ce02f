//! Users that are deleted, purged or forgotten, and tenants that are deleted.

mod deleting;
mod expiry;
mod forgetting;
mod purging;
