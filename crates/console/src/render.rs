//! Turns templates into responses.

use std::convert::Infallible;
use std::future::ready;

use askama::Template;
use axum::body::Body;
use axum::response::{Html, IntoResponse, Redirect};
use futures_util::{Stream, StreamExt, stream};
use http::{Response, StatusCode};
use url::Url;

use crate::failure::Failure;
use crate::words::{self, language};

/// The result of a page.
pub type Page = Result<Response<Body>, Failure>;

/// The HTML of a template, in the language of the request.
///
/// # Errors
/// The template cannot be rendered.
pub fn html(template: &impl Template) -> askama::Result<String> {
    words::translated(language::current(), || template.render())
}

/// Renders a template.
pub fn render(template: &impl Template) -> Response<Body> {
    match html(template) {
        Ok(html) => Html(html).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page cannot be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Renders a template with a status.
pub fn render_with_status(template: &impl Template, status: StatusCode) -> Response<Body> {
    (status, render(template)).into_response()
}

/// Leads to a page, so that a reload does not send the form again.
pub fn redirect(path: &str) -> Response<Body> {
    Redirect::to(path).into_response()
}

/// Where the parts of a page go that come later.
const MARKER: &str = "<!-- parts -->";

/// A source of parts of a page. It is dropped when the browser leaves.
pub trait Parts: Send + 'static {
    /// The next part; none after the end.
    fn next(&mut self) -> impl Future<Output = Option<String>> + Send;
}

/// The parts as a stream, in the language of the request.
pub fn stream_of(parts: impl Parts) -> impl Stream<Item = Result<String, Infallible>> + Send {
    let language = language::current();
    stream::unfold(parts, move |mut parts| async move {
        let part = language::scope(language, parts.next()).await?;
        Some((Ok(part), parts))
    })
}

/// Renders a page that grows by `parts`, at the comment `parts` in its template.
pub fn render_in_parts(template: &impl Template, parts: impl Parts) -> Response<Body> {
    let Ok(page) = html(template) else { return render(template) };
    let (begin, end) = page.split_once(MARKER).unwrap_or((&page, ""));
    let [begin, end] = [begin, end].map(|part| stream::once(ready(Ok(part.to_owned()))));
    Html(Body::from_stream(begin.chain(stream_of(parts)).chain(end))).into_response()
}

/// A path of the console as it is; its first page for any other. Browsers resolve `..`, also if it
/// is encoded, and read a backslash as a slash.
pub fn own_path(base: &str, path: &str) -> String {
    let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let is_own = path.strip_prefix(base).is_some_and(|rest| rest.starts_with('/'));
    let resolved = Url::parse("http://console").and_then(|origin| origin.join(path));
    let is_resolved = resolved.is_ok_and(|url| path.split(['?', '#']).next() == Some(url.path()));
    if is_plain && is_own && is_resolved { path.to_owned() } else { format!("{base}/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_the_console_follow() {
        for own in ["/console/", "/console/t/a/?x=1", "/console/t/a/users/1#identities"] {
            assert_eq!(own_path("/console", own), own);
        }
        for other in [
            "",
            "/",
            "//evil.example",
            "https://evil.example/console/",
            "/console/../evil",
            "/console/%2e%2E/evil",
            "/console/../",
            "/console/%2e%2e/",
            "/console/../c",
            "/console/..?x",
            "/console/\\evil.example",
            "/console/ ",
            "/consolex/",
        ] {
            assert_eq!(own_path("/console", other), "/console/", "{other}");
        }
    }
}
