//! Imports and exports.

pub mod export;
pub mod import;
pub mod undo;
