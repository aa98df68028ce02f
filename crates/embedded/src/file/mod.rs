//! The database's file: its locks, its header, the gate that decides whether writes reach it, and
//! its opening.

pub mod header;
pub mod lock;
pub mod opener;
pub mod store_file;
#[cfg(test)]
pub mod tests;
