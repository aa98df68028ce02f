//! Rejected rows that are mended in place: they become a file of their own, which goes through the
//! same steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use polynym_import::RejectedRow;

use super::session_files::{path, upload};
use super::typed::{Typed, request_id};
use super::{downloads, files};
use crate::imports::{
    self, JobKind, KeptMappings, Outcome, Settings, Snapshot, Upload, UploadNames,
};
use crate::imports::{shown, words};
use crate::prelude::*;
use crate::short_id::ShortId;
use crate::views::person::{People, Person};

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
    /// The user who has the identity; none if nobody has.
    pub owner: Option<Person>,
    /// Whether the cell can be mended here.
    pub can_mend: bool,
}

impl GroupView {
    /// The largest groups of an outcome.
    pub fn of(outcome: &Outcome) -> Vec<Self> {
        let groups = outcome.groups.iter().take(MAX_GROUPS).enumerate();
        let views = groups.map(|(index, group)| Self {
            index,
            column: shown(&group.name),
            words: words(&group.reason),
            count: group.count,
            rows: (0..).zip(&group.rows).map(|row| RowView::of(row, group.column)).collect(),
        });
        views.collect()
    }

    /// The number of the groups of an outcome that are not shown, and of their rows.
    pub fn others(outcome: &Outcome) -> (usize, u64) {
        let others = outcome.groups.iter().skip(MAX_GROUPS);
        (others.clone().count(), others.map(|group| group.count).sum())
    }

    /// Names the owners of identities.
    pub fn name_owners(groups: &mut [Self], people: &People) {
        let rows = groups.iter_mut().flat_map(|group| &mut group.rows);
        for owner in rows.filter_map(|row| row.owner.as_mut()) {
            *owner = people.of_line(&owner.id);
        }
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
            owner: (!row.owner.is_empty()).then(|| Person::unknown(&row.owner)),
            can_mend: is_short && column.is_some() && row.cells.is_some() && !row.is_imported,
        }
    }
}

/// Makes a file of the rows that a form mends, and leads to it.
pub async fn mend(
    visit: Visit,
    Path((tenant, number)): Path<(String, ShortId)>,
    form: Form,
) -> Page {
    let upload = upload(&visit, &tenant, number)?;
    match keep(&visit, &upload, &upload.snapshot(), &form).await? {
        Some(own) => Ok(redirect(&path(&visit, &own))),
        None => {
            let message = "No row is mended yet: correct at least one of them.";
            Err(Failure::Form(message.to_owned()))
        }
    }
}

/// Makes a file of the rows that a form mends, and begins to read it like the file that they are
/// from. None if the form mends no row.
///
/// # Errors
/// The rows of the form are shown no longer, or there is no room for a file.
pub async fn keep(
    visit: &Visit,
    upload: &Arc<Upload>,
    state: &Snapshot,
    form: &Form,
) -> Result<Option<Arc<Upload>>, Failure> {
    let request_id = request_id(form, "mend");
    if let Some(known) = visit.session.uploads.of_request(&upload.tenant, &request_id) {
        return Ok(Some(known));
    }
    let Some(outcome) = state.import.clone().or_else(|| state.dry_run.clone()) else {
        return Ok(None);
    };
    if form.get("outcome") != outcome.operation_id {
        return Ok(None);
    }
    let Some(text) = mended(&outcome, form)? else { return Ok(None) };
    let definitions = files::definitions(visit, &upload.tenant).await?;
    let slot = visit.session.uploads.receive(&request_id)?;
    slot.append(text).await?;
    let own = slot.keep(UploadNames {
        name: format!("{}.csv", name(&downloads::stem(upload))),
        tenant: upload.tenant.clone(),
        request_id: request_id.clone(),
        is_table: true,
        export: None,
    });
    upload.update(|state| state.mended.push((own.number, own.name.clone())));
    let settings = begin_like(&own, &Typed::of(state, form).settings, state, &outcome);
    if let Ok(Some(job)) = visit.session.uploads.begin(&own, JobKind::Read, &request_id) {
        let kept = KeptMappings::default();
        tokio::spawn(imports::inspect(own.clone(), job, settings, definitions, kept));
    }
    Ok(Some(own))
}

/// The name of a file of mended rows: that of a mended file has a number.
fn name(stem: &str) -> String {
    match stem.rsplit_once("-mended") {
        Some((first, "")) => format!("{first}-mended-2"),
        Some((first, last)) => match last.strip_prefix('-').and_then(|n| n.parse::<u32>().ok()) {
            Some(n) => format!("{first}-mended-{}", n.saturating_add(1)),
            None => format!("{stem}-mended"),
        },
        None => format!("{stem}-mended"),
    }
}

/// The mended rows as a table, below the header of their file; none if there are none.
fn mended(outcome: &Outcome, form: &Form) -> Result<Option<Vec<u8>>, Failure> {
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
            let text = layout.text(cells.iter());
            text.map(Some).map_err(|error| Failure::Internal(error.to_string()))
        }
        _ => Ok(None),
    }
}

/// Gives a file of mended rows the columns and options of the file that they are from. Returns how
/// to read it.
fn begin_like(
    own: &Arc<Upload>,
    typed: &Settings,
    state: &Snapshot,
    outcome: &Outcome,
) -> Settings {
    let separator = outcome.layout.as_ref().map(|layout| layout.separator_name());
    let settings = Settings {
        encoding: String::new(),
        separator: separator.unwrap_or_default(),
        ..typed.clone()
    };
    own.update(|new| {
        new.settings = settings.clone();
        new.names.clone_from(&state.names);
        new.options = outcome.options.clone();
    });
    settings
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn a_mended_file_of_a_mended_file_has_a_number() {
        assert_eq!(name("people"), "people-mended");
        assert_eq!(name("people-mended"), "people-mended-2");
        assert_eq!(name("people-mended-2"), "people-mended-3");
    }
}
