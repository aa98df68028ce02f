//! Where users and claims are kept. Every store here implements [`crate::directory::store::Store`] and
//! passes the
//! [`conformance`] suite; what a store does with bytes and disks stays in its own module.

pub mod coalesce;
pub mod embedded;
pub mod integrity;
pub mod mongo;
