//! The lines that wait for an answer. Their original text is needed if they are rejected. The
//! reader waits while the window is full.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use csv::StringRecord;
use polynym_lines::UniqueValue;
use serde_json::Value;

/// The maximum bytes of waiting lines.
const MAX_BYTES: usize = 16 << 20;
/// The minimum bytes counted for a line.
const MIN_LINE_BYTES: usize = 512;

/// A line of the file.
#[derive(Clone, Debug)]
pub enum Original {
    /// The text of a line of JSON.
    Text(Arc<str>),
    /// A row of a table.
    Row(Arc<OriginalRow>),
}

/// A row of a table.
#[derive(Debug)]
pub struct OriginalRow {
    pub cells: StringRecord,
    /// The column of each identity.
    pub identity_columns: Vec<usize>,
}

/// A line as JSON, for the file of rejects.
pub fn line_value(text: &str) -> Value {
    let parsed = serde_json::from_str::<UniqueValue>(text);
    parsed.map_or_else(|_| Value::String(text.to_owned()), |value| value.0)
}

/// The waiting lines.
#[derive(Default)]
pub struct Window {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lines: VecDeque<(i64, Option<Original>, usize)>,
    bytes: usize,
    /// The bytes of answered lines.
    answered: u64,
    is_closed: bool,
}

impl Window {
    /// Adds a line, after waiting for room. Returns false if the import has ended.
    pub fn push(&self, line: i64, original: Option<Original>, bytes: usize) -> bool {
        let mut state = self.state();
        while state.bytes > MAX_BYTES && !state.is_closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_closed {
            return false;
        }
        state.bytes += bytes.max(MIN_LINE_BYTES);
        state.lines.push_back((line, original, bytes));
        true
    }

    /// A waiting line.
    pub fn get(&self, line: i64) -> Option<Original> {
        let state = self.state();
        let n = state.lines.binary_search_by_key(&line, |(number, ..)| *number).ok()?;
        state.lines.get(n).and_then(|(_, original, _)| original.clone())
    }

    /// Removes the lines up to this one. Returns the bytes of all answered lines.
    pub fn answer(&self, line: i64) -> u64 {
        let mut state = self.state();
        while let Some((_, _, bytes)) = state.lines.pop_front_if(|(number, ..)| *number <= line) {
            state.bytes -= bytes.max(MIN_LINE_BYTES);
            state.answered += bytes as u64;
        }
        self.changed.notify_all();
        state.answered
    }

    /// Ends the import: accepts no more lines.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    /// Whether the import has ended.
    pub fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
