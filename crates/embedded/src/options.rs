//! The settings of the embedded store.

use polynym_store_common::owner_hints::HINT_BYTES;

/// The settings of an `Embedded` store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Memory for pages of the database, in bytes. It is allocated on demand.
    pub cache_bytes: usize,
    /// Memory for owner hints, in bytes. It is allocated on demand.
    pub hint_bytes: usize,
    /// The most mutations that share one sync.
    pub group_limit: usize,
    /// The bytes of the disk that copies of the store and notices leave free for other mutations.
    /// None for a tenth of the disk, at most 8 GiB.
    pub reserved_disk_bytes: Option<u64>,
    /// The bytes that are written to the file until the snapshot of an export is dropped. None for
    /// a quarter of the file, at least 256 MiB and at most 4 GiB.
    pub max_snapshot_writes: Option<u64>,
    /// Whether to create a store in a folder that is empty or does not exist.
    pub create: bool,
    /// Whether a commit waits until the disk has it. A store that is not durable may be damaged if
    /// the machine stops, but not if only the process does.
    pub durable: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 1 << 30,
            hint_bytes: HINT_BYTES,
            group_limit: 1_024,
            reserved_disk_bytes: None,
            max_snapshot_writes: None,
            create: true,
            durable: true,
        }
    }
}
