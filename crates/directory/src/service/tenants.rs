//! Tenants: their policies, and their background jobs.

pub mod admin;
pub mod deletion;
pub mod each_tenant;
pub mod history_changes;
pub mod index_changes;
pub mod jobs;
mod new_keys;
pub mod renormalization;
