//! Bulk changes: those of the tenant, a new one with its dry run, progress, stopping, resuming, and
//! what failed.

mod list;
mod new;
mod one;
mod selection;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use crate::console::Shared;

/// The pages, below those of a tenant.
pub fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/bulk", get(list::page))
        .route("/bulk/selection", post(selection::submit).get(selection::back))
        .route("/bulk/new", get(new::page).post(new::try_out))
        .route("/bulk/{id}", get(one::page))
        .route("/bulk/{id}/apply", post(one::apply).get(one::back))
        .route("/bulk/{id}/stop", post(one::stop).get(one::back))
        .route("/bulk/{id}/resume", post(one::resume).get(one::back))
        .route("/bulk/{id}/failures.csv", get(one::failures))
}
