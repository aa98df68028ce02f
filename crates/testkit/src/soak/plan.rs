//! The settings of a soak.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::mongo::Sharded;

/// The length and the load of a soak.
pub struct Plan {
    /// The program that serves.
    pub program: PathBuf,
    pub length: Duration,
    /// The time between two samples.
    pub interval: Duration,
    pub callers: usize,
    /// The users of each caller.
    pub users: usize,
}

/// The store of the servers.
pub enum Store {
    /// One server on a folder.
    Embedded,
    /// Two servers on an empty database of a cluster, whose shards this soak stops.
    Cluster(Arc<Sharded>, String),
}
