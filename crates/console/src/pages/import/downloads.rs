//! The files that belong to an import: the map file, and the rejects.

use serde::Deserialize;

use super::session_files::upload;
use crate::download::{self, attachment};
use crate::imports::Upload;
use crate::prelude::*;
use crate::short_id::ShortId;

/// Which rejects are meant.
#[derive(Default, Deserialize)]
pub struct Which {
    /// `dry-run`, or that of the import.
    #[serde(default)]
    of: String,
}

/// The map file, by which the command line reads the table in the same way.
pub async fn map_file(visit: Visit, Path((tenant, number)): Path<(String, ShortId)>) -> Page {
    let upload = upload(&visit, &tenant, number)?;
    let state = upload.snapshot();
    let text = state.settings.map_file(&state.names).text().map_err(Failure::Internal)?;
    Ok(attachment(text, "application/toml", &map_name(&upload)))
}

/// The rejects, in the form of the file.
pub async fn rejects(
    visit: Visit,
    Path((tenant, number)): Path<(String, ShortId)>,
    Query(Which { of }): Query<Which>,
) -> Page {
    let upload = upload(&visit, &tenant, number)?;
    let state = upload.snapshot();
    let outcome = if of == "dry-run" { state.dry_run } else { state.import };
    let file = outcome.and_then(|outcome| outcome.rejects.clone()).ok_or(Failure::FileGone)?;
    let (content_type, end) = match upload.is_table {
        true => (download::CSV, ".rejects.csv"),
        false => ("application/x-ndjson", ".rejects"),
    };
    Ok(attachment(file.body(), content_type, &format!("{}{end}", stem(&upload))))
}

/// The name of the map file.
pub fn map_name(upload: &Upload) -> String {
    format!("{}.toml", stem(upload))
}

/// The name of a file without its end, of characters that need no quotes.
pub fn stem(upload: &Upload) -> String {
    let stem = upload.name.rsplit_once('.').map_or(&*upload.name, |(stem, _)| stem);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let plain: String = stem.chars().map(|c| if is_plain(c) { c } else { '-' }).take(64).collect();
    if plain.trim_matches('-').is_empty() { "import".to_owned() } else { plain }
}
