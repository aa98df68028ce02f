//! Deliveries of a tenant's events: the list, one with its attempts, and the forms.

mod draft;
mod list;
mod one;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use crate::console::Shared;

/// The pages, below those of a tenant.
pub fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/deliveries", get(list::page))
        .route("/deliveries/new", get(draft::new).post(draft::create))
        .route("/deliveries/of/{id}", get(one::page))
        .route("/deliveries/of/{id}/change", get(draft::change).post(draft::update))
        .route("/deliveries/of/{id}/pause", post(one::pause).get(one::back))
        .route("/deliveries/of/{id}/resume", post(one::resume).get(one::back))
        .route("/deliveries/of/{id}/test", post(one::test).get(one::back))
        .route("/deliveries/of/{id}/replay", post(one::replay).get(one::back))
        .route("/deliveries/of/{id}/delete", get(one::confirm).post(one::delete))
}
