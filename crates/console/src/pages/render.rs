//! Turns templates into responses.

use askama::Template;
use axum::body::Body;
use axum::response::{Html, IntoResponse, Redirect};
use http::{Response, StatusCode};

use crate::failure::Failure;

/// The result of a page.
pub type Page = Result<Response<Body>, Failure>;

/// Renders a template.
pub fn render(template: &impl Template) -> Response<Body> {
    match template.render() {
        Ok(html) => Html(html).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page cannot be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Leads to a page, so that a reload does not send the form again.
pub fn redirect(path: &str) -> Response<Body> {
    Redirect::to(path).into_response()
}
