//! The lines that were sent and not answered yet. They are kept as they were, since any may be
//! rejected. The reader waits while they are many.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// The bytes of lines that wait for an answer.
const BYTES: usize = 16 << 20;
/// The bytes that a line counts at least.
const LEAST: usize = 512;

/// A line as it was.
#[derive(Clone, Debug)]
pub enum Original {
    /// The text of a line of JSON.
    Text(Arc<str>),
    /// The user of a row of CSV.
    User(Arc<crate::proto::v1::User>),
}

impl Original {
    /// The line for the file of rejects: an object where it is one.
    pub fn value(&self) -> Value {
        match self {
            Self::Text(text) => {
                serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_string()))
            }
            Self::User(user) => super::codec::user_object(user).unwrap_or(Value::Null),
        }
    }
}

/// The lines that wait.
#[derive(Default)]
pub struct Window {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lines: VecDeque<(i64, Original, usize)>,
    bytes: usize,
    /// The bytes of the lines that were answered.
    answered: u64,
    is_closed: bool,
}

impl Window {
    /// Adds a line of so many bytes once there is room. Returns whether it was added: not once the
    /// import has ended.
    pub fn push(&self, line: i64, original: Original, bytes: usize) -> bool {
        let mut state = self.state();
        while state.bytes > BYTES && !state.is_closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_closed {
            return false;
        }
        state.bytes += bytes.max(LEAST);
        state.lines.push_back((line, original, bytes));
        true
    }

    /// A line that waits.
    pub fn get(&self, line: i64) -> Option<Original> {
        let state = self.state();
        let n = state.lines.binary_search_by_key(&line, |(number, ..)| *number).ok()?;
        state.lines.get(n).map(|(_, original, _)| original.clone())
    }

    /// Removes the lines up to this one. Returns the bytes of all lines that were answered.
    pub fn answer(&self, line: i64) -> u64 {
        let mut state = self.state();
        while let Some((_, _, bytes)) = state.lines.pop_front_if(|(number, ..)| *number <= line) {
            state.bytes -= bytes.max(LEAST);
            state.answered += bytes as u64;
        }
        self.changed.notify_all();
        state.answered
    }

    /// Takes no more lines.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    /// Whether it takes no more lines.
    pub fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
