//! The histories of users and tenants.

pub mod tenant_events;
pub mod tenant_history;
pub mod user_history;
