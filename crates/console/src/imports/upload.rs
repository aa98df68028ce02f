//! An uploaded file, and what became of it.

use std::sync::{Arc, Mutex, PoisonError};

use polynym_import::{ExportFormat, Notes};
use polynym_table::{FewValues, Tally};
use tokio::task::AbortHandle;

use super::job::{Job, JobKind};
use super::options::ImportOptions;
use super::outcome::Outcome;
use super::settings::Settings;
use super::temp_file::KeptFile;
use crate::short_id::ShortId;

/// An uploaded file.
pub struct Upload {
    /// Its id in the session.
    pub number: ShortId,
    /// Its name.
    pub name: String,
    pub tenant: String,
    /// The id of the request that uploaded it.
    pub request_id: String,
    /// Whether it is a table, not lines of JSON.
    pub is_table: bool,
    /// The format of another user directory.
    pub export: Option<ExportFormat>,
    pub file: Arc<KeptFile>,
    state: Mutex<Snapshot>,
    /// The task that removes the file after a day.
    removal: Mutex<Option<AbortHandle>>,
}

/// The progress of a file.
#[derive(Clone, Default)]
pub struct Snapshot {
    /// The work on it that runs, or was last.
    pub job: Option<Arc<Job>>,
    pub settings: Settings,
    /// The names of the columns, from when it was last read without an error.
    pub names: Vec<String>,
    /// Its content, or why it cannot be read.
    pub reading: Option<Result<Arc<Reading>, String>>,
    pub dry_run: Option<Arc<Outcome>>,
    pub import: Option<Arc<Outcome>>,
    /// The options with which the first form begins.
    pub options: ImportOptions,
    /// Whether the columns are those that the browser kept from an earlier file.
    pub is_kept: bool,
    /// What is said of the form that was sent last; empty for nothing.
    pub warning: String,
    /// The files of corrected rows of this one: their ids and names.
    pub mended: Vec<(ShortId, String)>,
}

/// The content of a file.
#[derive(Default)]
pub struct Reading {
    pub encoding: String,
    pub separator: String,
    /// Some cells of each column.
    pub examples: Vec<String>,
    /// The rows that have text.
    pub rows: u64,
    pub rejected: u64,
    /// The reasons for which rows would be rejected, the most frequent first: with their number and
    /// the first line.
    pub reasons: Vec<(String, u64, i64)>,
    /// The first rows.
    pub sample: Vec<SampleRow>,
    pub tally: Tally,
    /// The data that are left out of the export of another user directory.
    pub notes: Notes,
    /// Whether the country of national phone numbers is a guess.
    pub is_region_guessed: bool,
    /// The rows with an identity of an earlier row, and the first of them.
    pub repeats: (u64, i64),
    /// The values that are not understood, the most frequent first; then those with a meaning.
    pub values: Vec<SpecialValue>,
    /// The columns that have one of few values, by their names.
    pub kinds: Vec<(String, FewValues)>,
}

/// A value that is not understood, or was given a meaning.
#[derive(Clone)]
pub struct SpecialValue {
    pub column: String,
    pub kind: FewValues,
    pub value: String,
    pub rows: u64,
}

/// A row as it would be read.
#[derive(Default)]
pub struct SampleRow {
    pub line: i64,
    pub name: String,
    /// The identities, in their canonical form.
    pub identities: Vec<String>,
    /// The attributes: name and value.
    pub attributes: Vec<(String, String)>,
    /// The reason why it cannot be read; empty if it can.
    pub error: String,
}

impl Upload {
    /// A file that is whole.
    pub fn new(number: ShortId, file: Arc<KeptFile>, own: UploadNames) -> Self {
        let UploadNames { name, tenant, request_id, is_table, export } = own;
        let (state, removal) = (Mutex::default(), Mutex::default());
        Self { number, name, tenant, request_id, is_table, export, file, state, removal }
    }

    /// Its progress.
    pub fn snapshot(&self) -> Snapshot {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The work on it that runs.
    pub fn running(&self) -> Option<Arc<Job>> {
        self.snapshot().job.filter(|job| !job.has_ended())
    }

    /// Changes its state.
    pub fn update(&self, change: impl FnOnce(&mut Snapshot)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether it is imported or checked.
    pub fn is_sent(&self) -> bool {
        self.running().is_some_and(|job| job.kind != JobKind::Read)
    }

    /// Sets the task that removes the file. It ends with the file.
    pub fn set_removal(&self, task: AbortHandle) {
        *self.removal.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    /// Stops the work on it.
    pub fn stop(&self) {
        if let Some(job) = self.running() {
            job.stop.set();
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(task) = self.removal.get_mut().unwrap_or_else(PoisonError::into_inner) {
            task.abort();
        }
    }
}

/// How a file is named.
pub struct UploadNames {
    pub name: String,
    pub tenant: String,
    pub request_id: String,
    pub is_table: bool,
    pub export: Option<ExportFormat>,
}
