//! Faults in filters, with their places.

use crate::directory::error::{Error, Invalid};

/// The characters of a filter that a message shows before and after a fault.
const SHOWN: [usize; 2] = [48, 24];

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

    /// The error for a caller: the fault, its place, and a line with a caret under it.
    pub fn into_error(self, filter: &str) -> Error {
        let at = filter.floor_char_boundary(self.at);
        let place = filter[..at].chars().count();
        let found = match filter[at..].chars().next() {
            Some(_) => format!("at character {}", place + 1),
            None => "at the end".to_owned(),
        };
        let message = format!("{} {found}:\n{}", self.message, excerpt(filter, place));
        Error::invalid(Invalid::Filter, "filter", message)
    }
}

/// The part of the filter around a character, and a caret under it.
fn excerpt(filter: &str, place: usize) -> String {
    let first = place.saturating_sub(SHOWN[0]);
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown = filter.chars().skip(first);
    let line: String = shown.by_ref().take(place - first + SHOWN[1]).map(plain).collect();
    let [before, after] = [first > 0, shown.next().is_some()].map(|cut| if cut { "…" } else { "" });
    let indent = " ".repeat(place - first + before.chars().count());
    format!("{before}{line}{after}\n{indent}^")
}
