//! The outcome of a dry run or an import.

use std::sync::Arc;
use std::time::SystemTime;

use polynym_import::{RejectGroup, TableLayout};
use polynym_proto::v1::import_users_response::{Change, Progress};
use polynym_table::Tally;

use super::options::ImportOptions;
use super::shown;
use super::temp_file::KeptFile;
use crate::views::event::{self, ChangeView};

/// The changed users that are shown.
const MAX_CHANGES: usize = 10;
/// The changes of a user that are shown.
const MAX_ROWS: usize = 10;

/// The outcome of a dry run or an import.
#[derive(Clone, Default)]
pub struct Outcome {
    pub is_dry_run: bool,
    pub options: ImportOptions,
    pub progress: Progress,
    /// The lines that were rejected, here or by the server.
    pub rejected: i64,
    pub reasons: Vec<RejectReason>,
    /// The rejects of a table by column and reason, the most frequent first.
    pub groups: Vec<RejectGroup>,
    /// The header of a table.
    pub layout: Option<TableLayout>,
    pub tally: Tally,
    /// The first changes.
    pub changes: Vec<UserChange>,
    /// The other users that would change.
    pub more_changes: usize,
    /// The id of the import in the history.
    pub operation_id: String,
    /// The file of rejects.
    pub rejects: Option<Arc<KeptFile>>,
    /// The reason why it ended early; empty if it did not.
    pub error: String,
    pub was_stopped: bool,
    /// When it ended.
    pub ended: Option<SystemTime>,
}

/// A reason of rejects.
#[derive(Clone)]
pub struct RejectReason {
    pub name: String,
    pub count: u64,
    /// The first line, and what is said of it.
    pub line: i64,
    pub message: String,
}

/// The changes that a line makes.
#[derive(Clone)]
pub struct UserChange {
    pub line: i64,
    pub user_id: String,
    pub rows: Vec<ChangeView>,
}

impl Outcome {
    /// Adds what a line would change.
    pub fn add(&mut self, change: &Change) {
        if self.changes.len() == MAX_CHANGES {
            self.more_changes += 1;
            return;
        }
        let rows = change.changes.iter().flat_map(event::changes).take(MAX_ROWS);
        let cut = |row: ChangeView| ChangeView {
            name: shown(&row.name),
            is_attribute: row.is_attribute,
            before: shown(&row.before),
            after: shown(&row.after),
            users: row.users,
        };
        self.changes.push(UserChange {
            line: change.line,
            user_id: change.user_id.clone(),
            rows: rows.map(cut).collect(),
        });
    }

    /// Whether it was stopped or failed before its end.
    pub fn ended_early(&self) -> bool {
        self.was_stopped || !self.error.is_empty()
    }

    /// Whether an import would change something. One that was stopped may.
    pub const fn changes_something(&self) -> bool {
        self.error.is_empty() && (self.has_changed() || self.was_stopped)
    }

    /// Whether an import has created, restored or changed users.
    pub const fn has_changed(&self) -> bool {
        self.progress.created + self.progress.restored + self.progress.changed > 0
    }

    /// Whether there are rejects to download.
    pub fn has_rejects(&self) -> bool {
        self.rejects.as_ref().is_some_and(|file| file.bytes() > 0)
    }
}
