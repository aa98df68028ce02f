//! The page of a file: how it is read, what a dry run shows, and what became of its import.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::{Path, Query};
use http::HeaderValue;
use polynym_presentation::count::bytes;
use polynym_table::Locale;
use serde::Deserialize;
use uuid::Uuid;

use super::columns::{self, Columns, ENCODINGS, SEPARATORS};
use super::session_files::{path, upload};
use super::{actions, downloads};
use crate::frame::Frame;
use crate::imports::{
    ColumnSetting, ImportOptions, Job, JobKind, Outcome, Reading, Settings, Snapshot, Upload,
};
use crate::render::{Page, render};
use crate::short_id::ShortId;
use crate::views::commands;
use crate::visit::Visit;

/// The time that a page waits for work that may end soon.
const PATIENCE: Duration = Duration::from_millis(800);

#[derive(Template)]
#[template(path = "pages/import/file.html")]
struct FilePage {
    frame: Frame,
    path: String,
    name: String,
    size: String,
    is_table: bool,
    /// Work that goes on.
    progress: Option<ProgressView>,
    settings: Settings,
    columns: Columns,
    reading: Option<Arc<Reading>>,
    remarks: Vec<String>,
    error: String,
    options: ImportOptions,
    keys: Vec<String>,
    dry_run: Option<Arc<Outcome>>,
    dry_run_id: String,
    import: Option<Arc<Outcome>>,
    command: String,
    undo: String,
    map_name: String,
    request_id: String,
}

#[derive(Template)]
#[template(path = "pages/import/progress.html")]
struct ProgressPart {
    progress: ProgressView,
}

/// The progress of work.
struct ProgressView {
    title: &'static str,
    is_read: bool,
    percent: u64,
    lines: i64,
    created: i64,
    changed: i64,
    existing: i64,
    rejected: i64,
    rate: u64,
    is_stopping: bool,
}

impl ProgressView {
    fn of(job: &Job) -> Self {
        let progress = job.progress();
        Self {
            title: match job.kind {
                JobKind::Read => "Reading the file",
                JobKind::DryRun => "Dry run in progress",
                JobKind::Import => "Import in progress",
            },
            is_read: job.kind == JobKind::Read,
            percent: job.percent(),
            lines: progress.lines,
            created: progress.created,
            changed: progress.changed,
            existing: progress.existing,
            rejected: progress.rejected,
            rate: job.rate(),
            is_stopping: job.stop.is_set(),
        }
    }
}

/// The part of the columns that is shown.
#[derive(Default, Deserialize)]
pub struct Position {
    #[serde(default)]
    from: usize,
}

/// The page.
pub async fn page(
    visit: Visit,
    Path((tenant, number)): Path<(String, ShortId)>,
    Query(Position { from }): Query<Position>,
) -> Page {
    let upload = upload(&visit, &tenant, number)?;
    if visit.context.is_partial {
        return Ok(progress(&upload));
    }
    if let Some(job) = upload.running() {
        job.wait(PATIENCE).await;
    }
    Ok(render(&file(&visit, &upload, from)))
}

/// The progress, for a page that is open; it is loaded again when the work has ended.
fn progress(upload: &Upload) -> http::Response<axum::body::Body> {
    match upload.running() {
        Some(job) => render(&ProgressPart { progress: ProgressView::of(&job) }),
        None => {
            let mut response = http::Response::new(axum::body::Body::empty());
            response.headers_mut().insert("hx-refresh", HeaderValue::from_static("true"));
            response
        }
    }
}

fn file(visit: &Visit, upload: &Upload, from: usize) -> FilePage {
    let progress = upload.running().map(|job| ProgressView::of(&job));
    let state = upload.snapshot();
    let columns = Columns::of(&state, from);
    let dry_run_id = actions::state_id(&state);
    let keys = columns::keys(&state.settings, upload.is_table);
    let command = command(upload, &state);
    let (reading, error) = match state.reading {
        Some(Ok(reading)) => (Some(reading), String::new()),
        Some(Err(error)) => (None, error),
        None => (None, String::new()),
    };
    let last = state.import.as_ref().or(state.dry_run.as_ref());
    FilePage {
        path: path(visit, upload),
        name: upload.name.clone(),
        size: bytes(upload.file.bytes()),
        is_table: upload.is_table,
        progress,
        columns,
        remarks: reading.as_deref().map(columns::remarks).unwrap_or_default(),
        reading,
        error,
        options: last.map(|outcome| outcome.options.clone()).unwrap_or_default(),
        keys,
        undo: undo(upload, state.import.as_deref()),
        settings: state.settings,
        dry_run: state.dry_run,
        dry_run_id,
        import: state.import,
        command,
        map_name: downloads::map_name(upload),
        request_id: Uuid::new_v4().to_string(),
        frame: visit.frame(&upload.tenant),
    }
}

/// The command that does the same.
fn command(upload: &Upload, state: &Snapshot) -> String {
    let map_name = downloads::map_name(upload);
    let none = ImportOptions::default();
    let last = state.import.as_ref().or(state.dry_run.as_ref());
    let options = last.map_or(&none, |outcome| &outcome.options);
    let mut words = vec!["import", &upload.name, "--tenant", &upload.tenant];
    if upload.is_table {
        words.extend(["--format", "csv", "--map-file", &map_name]);
    } else {
        words.extend(["--format", "jsonl"]);
    }
    let flags = [
        ("--on-conflict", &options.on_conflict, "reject"),
        ("--on-existing", &options.on_existing, "reject"),
        ("--match", &options.key, ""),
    ];
    for (flag, value, default) in flags {
        if !value.is_empty() && value != default {
            words.extend([flag, value]);
        }
    }
    if state.import.is_none() {
        words.push("--dry-run");
    }
    commands::line(&words)
}

/// The command that undoes the import.
fn undo(upload: &Upload, import: Option<&Outcome>) -> String {
    import.map_or_else(String::new, |import| {
        commands::line(&["undo", &import.operation_id, "--tenant", &upload.tenant])
    })
}
