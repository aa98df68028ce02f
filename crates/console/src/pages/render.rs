//! Turns templates into responses.

use std::convert::Infallible;
use std::future::ready;

use askama::Template;
use axum::body::Body;
use axum::response::{Html, IntoResponse, Redirect};
use futures_util::{Stream, StreamExt, stream};
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

/// Where the parts of a page go that come later.
const MARKER: &str = "<!-- parts -->";

/// Renders a page that grows by `parts`, at the comment `parts` in its template.
pub fn render_in_parts(
    template: &impl Template,
    parts: impl Stream<Item = Result<String, Infallible>> + Send + 'static,
) -> Response<Body> {
    let Ok(page) = template.render() else { return render(template) };
    let (begin, end) = page.split_once(MARKER).unwrap_or((&page, ""));
    let [begin, end] = [begin, end].map(|part| stream::once(ready(Ok(part.to_owned()))));
    Html(Body::from_stream(begin.chain(parts).chain(end))).into_response()
}
