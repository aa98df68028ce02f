//! The server: its callers and its health.

mod callers;
mod figures;
mod health;
mod trends;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

use crate::console::Shared;

/// The pages of the server.
pub fn router() -> Router<Arc<Shared>> {
    callers::router().route("/health", get(health::page))
}
