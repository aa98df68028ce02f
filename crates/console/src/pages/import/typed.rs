//! What the form of a file's page has. Each of its buttons sends all of it, so that none loses what
//! was typed beside another.

use std::sync::Arc;

use super::files;
use super::session_files::path;
use crate::imports::{self, ImportOptions, JobKind, KeptMappings, Settings, Snapshot, Upload};
use crate::prelude::*;

/// What a form has.
pub struct Typed {
    /// How the file is read.
    pub settings: Settings,
    /// How it is imported.
    pub options: ImportOptions,
    /// What is said of meanings that a column does not have; empty without any.
    pub error: String,
    /// Whether the file was read in another way.
    pub is_read_anew: bool,
}

impl Typed {
    /// What a form has beside the state of its file.
    pub fn of(state: &Snapshot, form: &Form) -> Self {
        let settings = state.settings.with(form);
        let reading = state.reading.as_ref().and_then(|read| read.as_ref().ok());
        let kind = |column: &str| {
            let found = reading?.kinds.iter().find(|(known, _)| known == column);
            found.map(|(_, kind)| *kind)
        };
        let (settings, error) = settings.with_values(form, kind);
        let last = state.import.as_ref().or(state.dry_run.as_ref());
        let options = last.map_or(&state.options, |outcome| &outcome.options).with(form);
        let is_read_anew = settings != state.settings;
        Self { settings, options, error, is_read_anew }
    }
}

/// The id of the request that a button sends: those of one page differ.
pub fn request_id(form: &Form, action: &str) -> String {
    match form.get("request_id") {
        "" => String::new(),
        id => format!("{id}-{action}"),
    }
}

/// Reads a file again, and leads to its page, which says what was wrong in the form.
pub async fn read_again(
    visit: &Visit,
    upload: &Arc<Upload>,
    form: &Form,
    action: &str,
    (settings, warning): (Settings, String),
) -> Page {
    let definitions = files::definitions(visit, &upload.tenant).await?;
    let request_id = request_id(form, action);
    if let Some(job) = visit.session.uploads.begin(upload, JobKind::Read, &request_id)? {
        upload.update(|state| state.warning = warning);
        let kept = KeptMappings::default();
        tokio::spawn(imports::inspect(upload.clone(), job, settings, definitions, kept));
    }
    Ok(redirect(&address(visit, upload, form)))
}

/// The address of a file's page, at the columns that a form asks for.
pub fn address(visit: &Visit, upload: &Upload, form: &Form) -> String {
    let path = path(visit, upload);
    match form.get("from").parse::<usize>() {
        Ok(from) => format!("{path}?from={from}"),
        Err(_) => path,
    }
}
