//! `polynym import`, `polynym export`, `polynym sample`, `polynym backup`.

pub mod arguments;
pub mod backup;
mod changes;
pub mod export;
mod format;
pub mod import;
mod inspect;
mod report;
pub mod sample;
mod table;
pub mod undo;
