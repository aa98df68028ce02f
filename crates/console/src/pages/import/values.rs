//! What the values of columns mean that are not understood, and mappings that the browser keeps.

use axum::body::Body;
use http::header::SET_COOKIE;
use http::{HeaderMap, Response};
use polynym_table::{FewValues, likely_region, region_names};

use super::session_files::{path, upload};
use super::typed::{Typed, read_again};
use crate::imports::{KeptMappings, Reading, Settings, SpecialValue, shown};
use crate::prelude::*;
use crate::short_id::ShortId;

/// A value that is not understood, or was given a meaning.
pub struct ValueView {
    pub column: String,
    pub value: String,
    pub rows: u64,
    pub meaning: String,
    /// The meanings to choose from; none for countries, which have a list of names.
    pub choices: &'static [&'static str],
    /// Whether the meaning was chosen, and is no proposal.
    pub is_chosen: bool,
}

impl ValueView {
    /// The values of a file.
    pub fn of(reading: &Reading, settings: &Settings) -> Vec<Self> {
        reading.values.iter().map(|value| Self::one(value, settings)).collect()
    }

    fn one(value: &SpecialValue, settings: &Settings) -> Self {
        let own = settings.values.get(&value.column).and_then(|own| own.get(&value.value));
        let meaning = match value.kind {
            FewValues::Country => {
                let code = own.map(String::as_str).or_else(|| likely_region(&value.value));
                let named = region_names().iter().find(|(_, known)| Some(&**known) == code);
                named.map(|(name, _)| name.clone()).unwrap_or_default()
            }
            _ => own.cloned().unwrap_or_default(),
        };
        let choices: &[&str] = match value.kind {
            FewValues::Country => &[],
            FewValues::State => &["active", "disabled"],
            FewValues::YesOrNo => &["yes", "no"],
        };
        let (column, value_text) = (value.column.clone(), value.value.clone());
        let is_chosen = own.is_some();
        Self { column, value: value_text, rows: value.rows, meaning, choices, is_chosen }
    }

    /// The column, as it is shown.
    pub fn column_name(&self) -> String {
        shown(&self.column)
    }
}

/// The names of countries, if one of these values is to be one.
pub fn countries(values: &[ValueView]) -> Vec<&'static str> {
    let is_needed = values.iter().any(|value| value.choices.is_empty());
    let names = region_names().iter().map(|(name, _)| name.as_str());
    if is_needed { names.collect() } else { Vec::new() }
}

/// Keeps the columns of a file by a name, uses those that were kept, or removes them.
pub async fn keep(
    visit: Visit,
    headers: HeaderMap,
    Path((tenant, number)): Path<(String, ShortId)>,
    form: Form,
) -> Page {
    let upload = upload(&visit, &tenant, number)?;
    let state = upload.snapshot();
    let typed = Typed::of(&state, &form);
    let mut kept = KeptMappings::read(&headers, &visit.caller.name);
    let read = |settings| read_again(&visit, &upload, &form, "kept", (settings, typed.error));
    match form.get("action") {
        "use" => {
            let own = kept.named(form.get("kept")).ok_or_else(gone)?;
            let form_settings = Settings::of(&own.file, &state.names);
            let Settings { encoding, separator, .. } = state.settings;
            return read(Settings { encoding, separator, ..form_settings }).await;
        }
        "remove" => kept.remove(form.get("kept")),
        _ => {
            let file = typed.settings.map_file(&state.names);
            kept.keep(form.get("name"), &state.names, &file).map_err(Failure::Form)?;
        }
    }
    let response = match typed.is_read_anew {
        true => read(typed.settings).await?,
        false => redirect(&path(&visit, &upload)),
    };
    Ok(with_kept(response, &visit, &tenant, &kept))
}

/// A response that keeps mappings in the browser, for the pages of imports into this tenant.
pub fn with_kept(
    mut response: Response<Body>,
    visit: &Visit,
    tenant: &str,
    kept: &KeptMappings,
) -> Response<Body> {
    let path = format!("{}/import", visit.frame(tenant).home());
    if let Some(cookie) = kept.header(&path) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

fn gone() -> Failure {
    Failure::Form("The browser has not kept these columns: choose them again.".to_owned())
}
