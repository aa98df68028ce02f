//! The callers, their credentials, and those who are signed in.

mod access;
mod change;
mod list;
mod new;
mod sessions;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use self::change::Change;
use crate::console::Shared;

/// The pages of callers.
pub fn router() -> Router<Arc<Shared>> {
    let router = [Change::Extend, Change::Revoke].into_iter().fold(Router::new(), |router, own| {
        let page = move |state, visit, chosen| change::page(own, state, visit, chosen);
        let apply = move |state, visit, form| change::apply(own, state, visit, form);
        router.route(&format!("/callers/{}", own.name()), get(page).post(apply))
    });
    router
        .route("/callers", get(list::page))
        .route("/callers/new", get(new::page).post(new::create))
        .route("/callers/sessions", get(sessions::page))
        .route("/callers/sessions/end", post(sessions::end))
}
