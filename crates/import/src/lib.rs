//! Imports of files, for the command line and the console: a thread reads lines of JSON or the rows
//! of a table, a stream sends their users, and the answers say which of them were rejected.
//!
//! The memory is bounded: a window has the lines that wait for an answer.

#![forbid(unsafe_code)]

mod definitions;
mod exchange;
mod groups;
mod reader;
mod rejects;
mod send;
mod target;
mod window;

pub use definitions::definitions;
pub use groups::{RejectGroup, RejectedRow};
pub use polynym_exports::{Counts, ExportFormat, HEAD_BYTES, Notes, ReadOptions, guess, open};
pub use polynym_lines::{Line, Lines, Unreadable};
pub use reader::{Findings, Format, ReadError, is_table_name};
pub use rejects::{Reason, Rejects, TableLayout};
pub use send::{Import, Observer, SendError, Sent};
pub use target::Target;
