//! The page of a file: how it is read, what a dry run shows, and what became of its import.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use http::{HeaderMap, HeaderValue};
use polynym_import::ExportFormat;
use polynym_presentation::count::bytes;
use polynym_table::Locale;
use serde::Deserialize;
use uuid::Uuid;

use super::columns::{self, Columns, ENCODINGS, SEPARATORS};
use super::mending::GroupView;
use super::session_files::{path, upload};
use super::values::{self, ValueView};
use super::{actions, downloads};
use crate::form::{Path, Query};
use crate::frame::Frame;
use crate::imports::{
    ColumnSetting, ImportOptions, Job, JobKind, KeptMappings, MAX_NAME_CHARS, Outcome, Reading,
    Settings, Snapshot, Upload,
};
use crate::render::{Page, render};
use crate::short_id::ShortId;
use crate::views::commands;
use crate::views::person::People;
use crate::views::undoings::Undoings;
use crate::visit::Visit;
use crate::words::filters;

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
    /// Whether it is lines of JSON.
    is_lines: bool,
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
    /// The users of the dry run.
    people: People,
    /// Whether the import is undone.
    undoings: Undoings,
    dry_run_id: String,
    import: Option<Arc<Outcome>>,
    command: String,
    undo: String,
    map_name: String,
    request_id: String,
    /// The step that is next: 1 to 4, as [`STEPS`].
    step: usize,
    /// Whether the columns are those of the last file with the same header.
    is_kept: bool,
    /// The names of the mappings that the browser keeps.
    kept: Vec<String>,
    values: Vec<ValueView>,
    countries: Vec<&'static str>,
    groups: Vec<GroupView>,
    /// The number of other groups, and of their rows.
    more_groups: usize,
    more_rows: u64,
    /// The id of the outcome with the groups.
    outcome_id: String,
    /// What is said of the form that was sent last.
    warning: String,
    /// The files of corrected rows: their ids and names.
    mended: Vec<(ShortId, String)>,
}

impl FilePage {
    /// Whether the encoding is one of the list, or none was chosen.
    fn has_listed_encoding(&self) -> bool {
        let own = &self.settings.encoding;
        own.is_empty() || ENCODINGS.iter().any(|known| known.eq_ignore_ascii_case(own))
    }
}

/// The steps of an import.
const STEPS: [&str; 4] = ["File", "Columns", "Check", "Import"];

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
    restored: i64,
    changed: i64,
    existing: i64,
    rejected: i64,
    rate: u64,
    time_left: String,
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
            restored: progress.restored,
            changed: progress.changed,
            existing: progress.existing,
            rejected: progress.rejected,
            rate: job.rate(),
            time_left: job.time_left().map(time_left).unwrap_or_default(),
            is_stopping: job.stop.is_set(),
        }
    }
}

/// The time that work takes yet, in words.
fn time_left(left: Duration) -> String {
    match left.as_secs() {
        0..10 => "a few seconds left".to_owned(),
        seconds @ 10..90 => format!("about {} seconds left", seconds.div_ceil(10) * 10),
        seconds => format!("about {} minutes left", seconds.div_ceil(60)),
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
    headers: HeaderMap,
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
    let kept = KeptMappings::read(&headers, &visit.caller.name);
    let mut page = file(&visit, &upload, from, kept.names());
    if let Some(dry_run) = page.dry_run.clone().filter(|_| page.import.is_none()) {
        let ids = dry_run.changes.iter().map(|change| &*change.user_id);
        page.people = People::read(&visit.client(&tenant), ids).await;
    }
    let owners = page.groups.iter().flat_map(|group| &group.rows);
    let owners: Vec<_> = owners.filter_map(|row| Some(row.owner.as_ref()?.id.clone())).collect();
    let people = People::read(&visit.client(&tenant), owners.iter().map(String::as_str)).await;
    GroupView::name_owners(&mut page.groups, &people);
    if page.import.as_ref().is_some_and(|import| import.has_changed()) {
        page.undoings = Undoings::read(&visit.client(&tenant)).await;
    }
    Ok(render(&page))
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

fn file(visit: &Visit, upload: &Upload, from: usize, kept: Vec<String>) -> FilePage {
    let progress = upload.running().map(|job| ProgressView::of(&job));
    let state = upload.snapshot();
    let (columns, dry_run_id) = (Columns::of(&state, from), actions::state_id(&state));
    let keys = columns::keys(&state.settings, upload.is_table);
    let command = command(upload, &state);
    let (step, mended) = (step(&state), mended(visit, upload, &state));
    let (reading, error) = match state.reading.transpose() {
        Ok(reading) => (reading, String::new()),
        Err(error) => (None, error),
    };
    let last = state.import.as_ref().or(state.dry_run.as_ref());
    let (more_groups, more_rows) = last.map(|last| GroupView::others(last)).unwrap_or_default();
    let of = |read| ValueView::of(read, &state.settings);
    let values = reading.as_deref().map(of).unwrap_or_default();
    FilePage {
        step,
        is_kept: state.is_kept,
        kept,
        countries: values::countries(&values),
        values,
        groups: last.map(|outcome| GroupView::of(outcome)).unwrap_or_default(),
        more_groups,
        more_rows,
        outcome_id: last.map(|outcome| outcome.operation_id.clone()).unwrap_or_default(),
        warning: state.warning.clone(),
        mended,
        path: path(visit, upload),
        name: upload.name.clone(),
        size: bytes(upload.file.bytes()),
        is_table: upload.is_table,
        is_lines: !upload.is_table && upload.export.is_none(),
        progress,
        columns,
        remarks: reading.as_deref().map(columns::remarks).unwrap_or_default(),
        reading,
        error,
        options: last.map_or(&state.options, |outcome| &outcome.options).clone(),
        keys,
        undo: undo(upload, state.import.as_deref()),
        settings: state.settings,
        dry_run: state.dry_run,
        people: People::default(),
        undoings: Undoings::default(),
        dry_run_id,
        import: state.import,
        command,
        map_name: downloads::map_name(upload),
        request_id: Uuid::new_v4().to_string(),
        frame: visit.frame(&upload.tenant),
    }
}

/// The step that the file has reached.
fn step(state: &Snapshot) -> usize {
    match (&state.import, &state.dry_run, &state.reading) {
        (Some(_), ..) => 4,
        (_, Some(_), _) => 3,
        (.., Some(Ok(_))) => 2,
        _ => 1,
    }
}

/// The files with corrected rows of this one that are still open.
fn mended(visit: &Visit, upload: &Upload, state: &Snapshot) -> Vec<(ShortId, String)> {
    let open = visit.session.uploads.of_tenant(&upload.tenant);
    let is_open = |number| open.iter().any(|other| other.number == number);
    state.mended.iter().filter(|(number, _)| is_open(*number)).cloned().collect()
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
        let export = upload.export.map(ExportFormat::name);
        words.extend(["--format", export.unwrap_or("jsonl")]);
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
