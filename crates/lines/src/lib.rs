//! The lines of imports and exports: users, tenants and holds as JSON; the JSON mapping of all
//! messages of the API, and their identifiers.

#![forbid(unsafe_code)]

mod content;
mod identifier;
pub mod json;
mod line;
mod reader;
mod terminal;
mod unique_json;
mod user_line;

pub use content::{hold_object, internals_object, tenant_object};
pub use identifier::{identifier_message, raw_identifier};
pub use line::{ORIGINAL, Parsed, parse};
pub use reader::{Line, Lines, MAX_LINE_BYTES, Unreadable};
pub use terminal::{escaped, is_terminal_control};
pub use unique_json::UniqueValue;
pub use user_line::UserLine;
