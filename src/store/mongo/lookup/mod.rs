//! Reads of users and claims.

pub mod export;
pub mod find;
pub mod guess;
pub mod health;
pub mod pairs;
pub mod records;
pub mod resolve;
