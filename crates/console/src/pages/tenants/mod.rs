//! Tenants: the list, policies, definitions of attributes, and their history.

mod attributes;
mod conflict;
mod create;
mod delete;
mod handles;
mod history;
mod list;
mod listed;
mod policies;
mod policies_page;
mod policy_form;
mod policy_lists;
mod regions;
mod review;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use crate::console::Shared;

/// The pages of the server.
pub fn router() -> Router<Arc<Shared>> {
    Router::new().route("/tenants", get(list::page).post(create::create))
}

/// The pages of a tenant.
pub fn tenant_router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/policies", get(policies::page).post(policies::submit))
        .route("/policies/handles", post(handles::submit))
        .route("/policies/regions", post(regions::submit))
        .route("/policies/history", get(history::page))
        .route("/policies/attributes", get(attributes::page).post(attributes::submit))
        .route("/policies/delete", get(delete::page).post(delete::submit))
}
