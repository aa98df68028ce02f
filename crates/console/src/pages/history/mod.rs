//! Histories: what changed, when and by whom, of a user, a caller or an operation.

mod asked;
mod audit;
mod audit_file;
mod audit_live;
mod operation;
mod operation_users;
mod period;
mod progress;
mod user;
mod wanted;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

use crate::console::Shared;

/// The pages of histories, below the path of a tenant.
pub fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/users/{user}/history", get(user::page))
        .route("/audit", get(audit::all).post(audit::submit))
        .route("/audit/export", get(audit_file::all))
        .route("/audit/stream", get(audit_live::all))
        .route("/audit/{id}", get(audit::page))
        .route("/audit/{id}/export", get(audit_file::some))
        .route("/audit/{id}/stream", get(audit_live::some))
        .route("/audit/{id}/without/{field}", get(audit::without))
        .route("/operations/{operation}", get(operation::page))
        .route("/operations/{operation}/users", get(operation_users::page))
        .route("/operations/{operation}/undo", get(operation::preview).post(operation::undo))
}
