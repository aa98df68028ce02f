//! A user's page, and what can be done with one user.

mod attribute;
pub mod choose;
mod create;
mod identity;
mod lifecycle;
mod link;
mod merged;
mod name;
mod namesakes;
mod notices;
mod page;
mod purge;
mod shared_parts;
mod transfer;
mod undo;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use polynym_presentation::action::Action;

use crate::console::Shared;
use crate::prelude::*;

pub use shared_parts::restorable_until;

/// The pages of users.
pub fn router() -> Router<Arc<Shared>> {
    let one = Router::new()
        .route("/link", get(link::page).post(link::link))
        .route("/identity", post(identity::open).get(to_user))
        .route("/identity/{search}", get(identity::page))
        .route("/unlink", post(identity::unlink).get(to_user))
        .route("/verify", post(identity::verify).get(to_user))
        .route("/primary", post(identity::make_primary).get(to_user))
        .route("/replace", post(identity::replace).get(to_user))
        .route("/move", post(transfer::transfer).get(to_user))
        .route("/name", get(name::page).post(name::rename))
        .route("/attribute", post(attribute::open).get(to_user))
        .route("/attribute/{search}", get(attribute::page))
        .route("/attributes", get(attribute::new).post(attribute::set))
        .route("/undo", post(undo::undo).get(to_user))
        .route("/purge", get(purge::page).post(purge::purge))
        .route("/inbox", get(notices::page))
        .route("/inbox/send", get(notices::send_page).post(notices::send))
        .route("/inbox/read", post(notices::mark_read).get(to_user))
        .route("/inbox/delete", post(notices::delete).get(to_user));
    let one = Action::ALL.into_iter().fold(one, |router, action| {
        let page = move |visit, at| lifecycle::page(action, visit, at);
        let change = move |visit, at, form| lifecycle::change(action, visit, at, form);
        router.route(&format!("/{}", action.words().name), get(page).post(change))
    });
    Router::new()
        .route("/users/new", get(create::page).post(create::create))
        .route("/link", get(choose::page).post(choose::find))
        .route("/users/{user}", get(page::page))
        .nest("/users/{user}", one)
}

/// Leads to the user's page: the address is one of a form.
async fn to_user(visit: Visit, Path((tenant, id)): Path<(String, String)>) -> Page {
    Ok(redirect(&format!("{}/users/{}", visit.frame(&tenant).home(), shared_parts::user_id(&id)?)))
}
