//! The connection of all calls, which is replaced once it seems dead.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::connection::Connection;
use crate::error::{Error, Kind};

/// How many attempts in a row reach their deadlines without an answer on a dead connection.
const SILENT_DEADLINES: u32 = 2;

/// Opens a connection at its first call.
pub type Open = Box<dyn Fn() -> Connection + Send + Sync>;

/// The present connection. Calls on a former one go on.
pub struct Reconnect {
    present: Mutex<Present>,
    /// None if the caller opens connections.
    open: Option<Open>,
}

struct Present {
    connection: Connection,
    /// Whether the server has answered on it. Before, it may be still on its way to the server.
    has_answered: bool,
    /// The attempts since the last answer that have reached their deadlines.
    unanswered: u32,
}

impl Reconnect {
    pub fn new(connection: Connection, open: Option<Open>) -> Self {
        let present = Present { connection, has_answered: false, unanswered: 0 };
        Self { present: Mutex::new(present), open }
    }

    /// The connection of the next call.
    pub fn connection(&self) -> Connection {
        self.present().connection.clone()
    }

    /// Notes the outcome of an attempt. The last of several deadlines replaces the connection.
    pub fn note<A>(&self, outcome: &Result<A, Error>) {
        let mut present = self.present();
        match outcome {
            Err(error) if error.reason().is_empty() => {
                let is_late = error.kind() == Kind::DeadlineExceeded;
                present.unanswered += u32::from(is_late && present.has_answered);
            }
            _ => (present.has_answered, present.unanswered) = (true, 0),
        }
        if present.unanswered >= SILENT_DEADLINES {
            self.replace_in(&mut present);
        }
    }

    /// Leaves a connection that seems dead.
    pub fn replace(&self) {
        self.replace_in(&mut self.present());
    }

    fn replace_in(&self, present: &mut Present) {
        let Some(open) = &self.open else { return };
        *present = Present { connection: open(), has_answered: false, unanswered: 0 };
    }

    fn present(&self) -> MutexGuard<'_, Present> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
