//! `polynym import`, `polynym export`, `polynym sample`, `polynym backup`.

pub mod arguments;
pub mod backup;
mod changes;
pub mod export;
pub mod import;
mod inspect;
mod lines;
mod reader;
mod rejects;
mod report;
pub mod sample;
mod table;
mod target;
pub mod undo;
mod window;
