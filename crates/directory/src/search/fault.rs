//! Syntax errors in filters, with their positions.

use crate::error::{Error, Invalid};

/// An error at a byte offset of the filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    pub at: usize,
    pub message: String,
}

impl SyntaxError {
    pub fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }

    /// The error for a caller, with the position of the character. It omits the filter's text: that
    /// may have personal data, and callers log errors.
    pub fn into_error(self, filter: &str) -> Error {
        let at = filter.floor_char_boundary(self.at);
        let position = filter[..at].chars().count() + 1;
        let end = if at == filter.len() { ", its end" } else { "" };
        let message = format!("{} at character {position}{end}", self.message);
        Error::invalid(Invalid::Filter, "filter", message)
    }
}
