//! The metrics of the writer and its file.

use std::time::Instant;

use metrics::{gauge, histogram};

/// The gauge of mutations that wait.
pub const WRITE_QUEUE: (&str, &str) =
    ("polynym_write_queue", "Mutations that wait for the embedded store's writer");
/// The histogram of syncs.
pub const SYNC_SECONDS: (&str, &str) =
    ("polynym_sync_seconds", "Time in which the embedded store writes and syncs a commit");
/// The gauge of the size of the file.
pub const FILE_BYTES: (&str, &str) =
    ("polynym_store_file_bytes", "The size of the embedded store's file");
/// The gauge of the space that the file takes.
pub const FILE_ALLOCATED_BYTES: (&str, &str) = (
    "polynym_store_file_allocated_bytes",
    "The bytes that the embedded store's file takes of its disk, which may be fewer than its size",
);
/// The gauge of the size of the disk.
pub const DISK_BYTES: (&str, &str) =
    ("polynym_store_disk_bytes", "The size of the disk with the embedded store's file");
/// The gauge of the free space of the disk.
pub const DISK_FREE_BYTES: (&str, &str) =
    ("polynym_store_disk_free_bytes", "The free bytes of the disk with the embedded store's file");
/// The histogram of mutations that share a sync.
pub const SYNC_MUTATIONS: (&str, &str) =
    ("polynym_sync_mutations", "Mutations that share a sync of the embedded store");

/// A mutation that waits until this is dropped.
pub struct Queued;

impl Queued {
    pub fn new() -> Self {
        gauge!(WRITE_QUEUE.0).increment(1);
        Self
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        gauge!(WRITE_QUEUE.0).decrement(1);
    }
}

/// Counts the mutations of a group.
pub fn group_size(mutations: usize) {
    histogram!(SYNC_MUTATIONS.0).record(mutations as f64);
}

/// Times a sync.
pub fn sync<T>(commit: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let outcome = commit();
    histogram!(SYNC_SECONDS.0).record(begun.elapsed().as_secs_f64());
    outcome
}

/// Sets the gauges of the file: of its size, and of the space that it takes.
pub fn set_file_bytes(size: u64, allocated: u64) {
    gauge!(FILE_BYTES.0).set(size as f64);
    gauge!(FILE_ALLOCATED_BYTES.0).set(allocated as f64);
}

/// Sets the gauges of the disk: of its size, and of its free space.
pub fn set_disk_bytes(size: u64, free: u64) {
    gauge!(DISK_BYTES.0).set(size as f64);
    gauge!(DISK_FREE_BYTES.0).set(free as f64);
}
