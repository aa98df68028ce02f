//! `polynym import`, `polynym export`, `polynym sample`, `polynym backup`.

pub mod arguments;
pub mod backup;
mod codec;
mod csv;
pub mod export;
pub mod import;
mod jsonl;
mod line_breaks;
mod lines;
mod mapping;
mod quotes;
mod reader;
mod rejects;
mod report;
pub mod sample;
mod unique_json;
mod user_json;
mod window;
