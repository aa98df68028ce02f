//! Faults in filters, with their places.

use crate::error::{Error, Invalid};

/// A fault, and where in the filter it is, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub at: usize,
    pub message: String,
}

impl Fault {
    pub fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }

    /// The error for a caller: the fault, and its place. It shows nothing of the filter, which may
    /// name persons and would be in the log of whoever logs errors.
    pub fn into_error(self, filter: &str) -> Error {
        let at = filter.floor_char_boundary(self.at);
        let place = filter[..at].chars().count() + 1;
        let end = if at == filter.len() { ", its end" } else { "" };
        let message = format!("{} at character {place}{end}", self.message);
        Error::invalid(Invalid::Filter, "filter", message)
    }
}
