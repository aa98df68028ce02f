//! Preferences that a browser keeps: the theme, the language, the zone of times, the country of
//! numbers in national form, and whether single keys are shortcuts.

use std::sync::Arc;

use axum::extract::State;
use http::header::SET_COOKIE;

use crate::console::Shared;
use polynym_presentation::pasted::is_region;

use crate::context::{Context, is_zone};
use crate::cookies::preference_cookie;
use crate::form::Form;
use crate::render::{Page, own_path, redirect};
use crate::words::language::CHOICES;

/// Sets preferences, and returns to the page.
pub async fn set(State(shared): State<Arc<Shared>>, _: Context, form: Form) -> Page {
    let mut response = redirect(&own_path(&shared.base, form.get("next")));
    let region = form.get("region").to_uppercase();
    let language = form.get("language");
    let is_language = CHOICES.iter().any(|(code, _)| *code == language);
    let (theme, zone, keys) = (form.get("theme"), form.get("zone"), form.get("keys"));
    let chosen = [
        ("polynym_theme", theme, form.has("theme") && matches!(theme, "" | "light" | "dark")),
        ("polynym_language", language, is_language),
        ("polynym_zone", zone, form.has("zone") && is_zone(zone)),
        ("polynym_keys", keys, form.has("keys") && matches!(keys, "" | "off")),
        ("polynym_region", &region, is_region(&region)),
    ];
    for (name, value, _) in chosen.into_iter().filter(|(.., is_set)| *is_set) {
        if let Some(cookie) = preference_cookie(name, value, &shared.base) {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
    }
    Ok(response)
}
