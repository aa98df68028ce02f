//! The callers, their credentials, and those who are signed in.

mod access;
mod change;
mod list;
mod new;
mod sessions;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use crate::console::Shared;

/// The pages of callers.
pub fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/callers", get(list::page))
        .route("/callers/new", get(new::page).post(new::create))
        .route("/callers/extend", get(change::extend_page).post(change::extend))
        .route("/callers/revoke", get(change::revoke_page).post(change::revoke))
        .route("/callers/sessions", get(sessions::page))
        .route("/callers/sessions/end", post(sessions::end))
}
