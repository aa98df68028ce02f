//! The pages. A handler gathers by calls of the API and renders, nothing else.

mod bulk;
mod deliveries;
mod duplicates;
pub mod error;
pub mod events;
mod history;
pub mod import;
mod leaving;
mod merging;
pub mod preferences;
pub mod provider;
pub mod reload;
pub mod search;
pub mod server;
pub mod sign_in;
pub mod tenants;
pub mod usage;
pub mod user;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use crate::assets;
use crate::console::Shared;
use crate::failure::Failure;

/// All pages, below the path of the console.
pub fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/", get(search::first))
        .route("/assets/{version}/{name}", get(assets::asset))
        .route("/preferences", post(preferences::set))
        .route("/sign-in", get(sign_in::page).post(sign_in::sign_in))
        .route(provider::BEGIN, get(sign_in::page).post(provider::begin))
        .route(provider::CALLBACK, get(provider::callback))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/t/{tenant}/", get(search::home::page))
        .merge(server::router())
        .merge(tenants::router())
        .nest("/t/{tenant}", tenant())
        .method_not_allowed_fallback(|| async { Failure::NotFound })
        .fallback(|| async { Failure::NotFound })
}

/// The pages of a tenant.
fn tenant() -> Router<Arc<Shared>> {
    Router::new()
        .merge(import::router())
        .merge(search::router())
        .merge(history::router())
        .merge(user::router())
        .merge(merging::router())
        .merge(duplicates::router())
        .merge(bulk::router())
        .merge(deliveries::router())
        .merge(events::router())
        .merge(tenants::tenant_router())
        .merge(usage::router())
}
