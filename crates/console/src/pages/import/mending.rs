//! Rejected rows that are mended in place: they become a file of their own, which goes through the
//! same steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use polynym_import::RejectedRow;

use super::session_files::{path, upload};
use super::{downloads, files};
use crate::imports::{
    self, JobKind, KeptMappings, Outcome, Settings, Snapshot, Upload, UploadNames,
};
use crate::imports::{shown, words};
use crate::prelude::*;
use crate::short_id::ShortId;

/// The groups that are shown with their rows.
const MAX_GROUPS: usize = 6;
/// The characters of a cell that can be mended here.
const MAX_CELL_CHARS: usize = 200;

/// The rejects of a column for one reason.
pub struct GroupView {
    pub index: usize,
    pub column: String,
    pub words: String,
    pub count: u64,
    pub rows: Vec<RowView>,
}

/// A rejected row.
pub struct RowView {
    pub index: usize,
    pub line: i64,
    pub cell: String,
    pub message: String,
    /// Whether the cell can be mended here.
    pub can_mend: bool,
}

impl GroupView {
    /// The largest groups of an outcome; the others without their rows.
    pub fn of(outcome: &Outcome) -> Vec<Self> {
        let groups = outcome.groups.iter().enumerate();
        let views = groups.map(|(index, group)| Self {
            index,
            column: shown(&group.name),
            words: words(&group.reason),
            count: group.count,
            rows: match index < MAX_GROUPS {
                true => (0..).zip(&group.rows).map(|row| RowView::of(row, group.column)).collect(),
                false => Vec::new(),
            },
        });
        views.collect()
    }
}

impl RowView {
    fn of((index, row): (usize, &RejectedRow), column: Option<usize>) -> Self {
        let cell = column.map_or("", |column| row.cell(column));
        let is_short = cell.chars().count() <= MAX_CELL_CHARS;
        Self {
            index,
            line: row.line,
            cell: shown(cell),
            message: shown(&imports::advice(&row.message)),
            can_mend: is_short && column.is_some() && row.cells.is_some() && !row.is_imported,
        }
    }
}

/// Makes a file of the rows that a form mends, and begins to read it like the file that they are
/// from.
pub async fn mend(
    visit: Visit,
    Path((tenant, number)): Path<(String, ShortId)>,
    form: Form,
) -> Page {
    let upload = upload(&visit, &tenant, number)?;
    let request_id = form.get("request_id");
    if let Some(known) = visit.session.uploads.of_request(&tenant, request_id) {
        return Ok(redirect(&path(&visit, &known)));
    }
    let state = upload.snapshot();
    let outcome = state.import.clone().or_else(|| state.dry_run.clone());
    let outcome = outcome.ok_or(Failure::FileGone)?;
    let text = mended(&outcome, &form)?;
    let definitions = files::definitions(&visit, &tenant).await?;
    let slot = visit.session.uploads.receive(request_id)?;
    slot.append(text).await?;
    let own = slot.keep(UploadNames {
        name: format!("{}-mended.csv", downloads::stem(&upload)),
        tenant,
        request_id: request_id.to_owned(),
        is_table: true,
        export: None,
    });
    let settings = begin_like(&own, &state, &outcome);
    if let Ok(Some(job)) = visit.session.uploads.begin(&own, JobKind::Read, request_id) {
        let kept = KeptMappings::default();
        tokio::spawn(imports::inspect(own.clone(), job, settings, definitions, kept));
    }
    Ok(redirect(&path(&visit, &own)))
}

/// The mended rows as a table, below the header of their file.
fn mended(outcome: &Outcome, form: &Form) -> Result<Vec<u8>, Failure> {
    let mut rows: BTreeMap<i64, (&RejectedRow, BTreeMap<usize, String>)> = BTreeMap::new();
    for (g, group) in outcome.groups.iter().enumerate() {
        let Some(column) = group.column else { continue };
        for (r, row) in group.rows.iter().enumerate().filter(|(_, row)| !row.is_imported) {
            let field = format!("cell_{g}_{r}");
            if form.has(&field) && form.get(&field) != row.cell(column).trim() {
                let (_, changes) = rows.entry(row.line).or_insert((row, BTreeMap::new()));
                changes.insert(column, form.get(&field).to_owned());
            }
        }
    }
    let cells: Vec<_> = rows.values().filter_map(|(row, changes)| row.mended(changes)).collect();
    match &outcome.layout {
        Some(layout) if !cells.is_empty() => {
            layout.text(cells.iter()).map_err(|error| Failure::Internal(error.to_string()))
        }
        _ => Err(Failure::Form("No row is mended yet: correct at least one of them.".to_owned())),
    }
}

/// Gives a file of mended rows the columns and options of the file that they are from. Returns how
/// to read it.
fn begin_like(own: &Arc<Upload>, state: &Snapshot, outcome: &Outcome) -> Settings {
    let separator = outcome.layout.as_ref().map(|layout| layout.separator_name());
    let settings = Settings {
        encoding: String::new(),
        separator: separator.unwrap_or_default(),
        ..state.settings.clone()
    };
    own.update(|new| {
        new.settings = settings.clone();
        new.names.clone_from(&state.names);
        new.options = outcome.options.clone();
    });
    settings
}
