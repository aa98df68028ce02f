//! Searches, and the index of attributes that they read.

pub mod find;
pub mod index;
pub mod names;
pub mod walk;
