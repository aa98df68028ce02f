//! The events of a tenant: live over server-sent events, or page by page without scripts.

mod latest;
mod query;
mod stream;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

pub use stream::{EventLines, STREAM_TYPE, follow_events};

use crate::console::Shared;

/// The pages of a tenant.
pub fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/events", get(latest::page).post(query::submit))
        .route("/events/stream", get(stream::stream))
}
