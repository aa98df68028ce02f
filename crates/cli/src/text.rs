//! Values between their text forms and the API's messages.

pub mod attribute;
pub mod event;
pub mod filter_error;
pub mod identifier;
pub mod user_table;
