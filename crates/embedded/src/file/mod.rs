//! The database's file: its locks, its header, the gate that decides whether writes reach it, and
//! its opening; and the file of a backup.

pub mod backup_file;
pub mod header;
pub mod lock;
pub mod opener;
pub mod owner;
pub mod store_file;
#[cfg(test)]
pub mod tests;
