//! Merging two users: choosing the other, the preview, the merge, and undoing it.

mod choose;
mod compare;
mod merge;
mod subject;
mod unmerge;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

use crate::console::Shared;

/// The pages, below those of a tenant.
pub fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/users/{user}/merge", get(choose::page).post(choose::submit))
        .route("/users/{user}/merge/{other}", get(merge::page).post(merge::apply))
        .route("/users/{user}/unmerge", get(unmerge::merged))
        .route("/users/{user}/unmerge/{other}", get(unmerge::page).post(unmerge::apply))
}
