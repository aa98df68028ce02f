//! Expiry, purges, TTL indexes and deleted tenants.

mod expiry;
mod purge;
mod tenants;
mod ttl;
