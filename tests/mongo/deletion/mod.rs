//! Expiry, purges, TTL indexes and deleted tenants.

mod expiry;
mod purge;
mod tenant_events;
mod tenants;
mod ttl;
