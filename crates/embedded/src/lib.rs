//! The embedded store: one folder on one machine, no server to install. Reads run on the caller's
//! thread, on the last durable snapshot; one thread writes, and one sync covers all mutations that
//! waited for it.

mod bulk_changes;
mod deliveries;
mod disk_space;
mod error;
mod file;
mod history;
mod inbox;
mod job;
mod last_seen;
mod lookup;
mod measure;
mod mutation;
mod open;
mod options;
mod queue;
mod reads;
mod recent_events;
mod requests;
mod schema;
mod search;
mod sender_order;
mod setup;
mod store;
#[cfg(test)]
mod tests;
mod usage;
mod version;

pub use error::OpenError;
pub use lookup::export::DROPPED_SNAPSHOTS;
pub use measure::{
    DISK_BYTES, DISK_FREE_BYTES, FILE_ALLOCATED_BYTES, FILE_BYTES, SYNC_MUTATIONS, SYNC_SECONDS,
    WRITE_QUEUE,
};
pub use options::Options;
pub use setup::compact::{Compacted, FileSize, compact};
pub use setup::integrity::IntegritySession;
pub use setup::restore::{Restored, restore};
pub use setup::status::{Status, confirm_clock, status};
pub use setup::upgrade::{upgrade, upgrade_to};
pub use store::Embedded;
pub use version::Supported;
