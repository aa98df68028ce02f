//! The tables of the store, and the stored forms of their rows.

pub mod claim;
pub mod event;
pub mod index_key;
pub mod tables;
pub mod token_key;
pub mod user;
pub mod versions;
