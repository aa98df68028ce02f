//! Reads of users and claims.

pub mod export;
pub mod find;
pub mod health;
pub mod hints;
pub mod key_lookup;
pub mod late_find;
pub mod plain_find;
pub mod read_sequence;
pub mod records;
pub mod reply;
pub mod resolve;
