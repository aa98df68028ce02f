//! The stores of users and claims. Each implements the traits of
//! [`stores`](crate::directory::stores) and passes the conformance suite; bytes and disks are the
//! matter of its own module.

mod attribute_names;
pub mod coalesce;
pub mod embedded;
pub mod integrity;
pub mod lookup_cache;
pub mod measured;
pub mod mongo;
pub mod owner_hints;
mod searched;
