//! What a browser remembers: the theme, and the country of numbers in national form.

use std::sync::Arc;

use axum::extract::State;
use http::header::SET_COOKIE;

use crate::console::Shared;
use polynym_presentation::pasted::is_region;

use crate::context::Context;
use crate::cookies::preference_cookie;
use crate::form::Form;
use crate::render::{Page, own_path, redirect};

/// Sets preferences, and returns to the page.
pub async fn set(State(shared): State<Arc<Shared>>, _: Context, form: Form) -> Page {
    let mut response = redirect(&own_path(&shared.base, form.get("next")));
    let region = form.get("region").to_uppercase();
    let chosen = [
        ("polynym_theme", form.get("theme"), form.has("theme")),
        ("polynym_region", &region, is_region(&region)),
    ];
    for (name, value, is_set) in chosen {
        let value = value.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
        if let Some(cookie) =
            preference_cookie(name, &value, &shared.base).filter(|_| is_set && value.len() <= 8)
        {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
    }
    Ok(response)
}
