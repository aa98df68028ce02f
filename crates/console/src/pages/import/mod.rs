//! Imports: a file is uploaded, its columns get fields, a dry run shows what would happen, and then
//! it is imported.

mod actions;
mod columns;
mod downloads;
mod file;
mod files;
mod form_body;
mod mending;
mod session_files;
mod typed;
mod values;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};

use crate::console::Shared;

/// The pages, below the path of a tenant.
pub fn router() -> Router<Arc<Shared>> {
    // The handler bounds the bytes of a file.
    let upload = post(files::upload).layer(DefaultBodyLimit::disable());
    Router::new()
        .route("/import", get(files::page).merge(upload))
        .route("/import/{number}", get(file::page))
        .route("/import/{number}/columns", post(actions::read))
        .route("/import/{number}/values", post(actions::read))
        .route("/import/{number}/kept", post(values::keep))
        .route("/import/{number}/mend", post(mending::mend))
        .route("/import/{number}/dry-run", post(actions::dry_run))
        .route("/import/{number}/run", post(actions::import))
        .route("/import/{number}/stop", post(actions::stop))
        .route("/import/{number}/remove", post(actions::remove))
        .route("/import/{number}/map", get(downloads::map_file))
        .route("/import/{number}/rejects", get(downloads::rejects))
}
