//! The HTTP listener: the API over Connect, imports, exports and watches as lines, and pages.

pub(crate) mod lines;
pub(crate) mod watch;

use std::sync::Arc;

use bytes::Bytes;
use polynym_proto::DESCRIPTORS;
use polynym_transport::http::{Http, HttpOptions, Page, Site};

/// The pages outside the API, which is below `prefix`.
fn pages(prefix: String) -> Vec<Page> {
    let openapi = move || {
        let document = polynym_openapi::document(&prefix);
        document.map_or_else(|_| String::new(), |document| document.to_string())
    };
    vec![
        Page::new("/healthz", "text/plain; charset=utf-8", || Bytes::from_static(b"ok\n")),
        Page::new("/api.binpb", "application/octet-stream", || Bytes::from_static(DESCRIPTORS)),
        Page::new("/openapi.json", "application/json", move || openapi().into()),
    ]
}

/// The services of an HTTP listener: the API below `prefix`, also for web pages of
/// `allowed_origins`, and a site beside it.
pub fn api(prefix: String, allowed_origins: Vec<String>, site: Option<Box<dyn Site>>) -> Arc<Http> {
    let pages = pages(prefix.clone());
    let options = HttpOptions { prefix, allowed_origins, pages, site };
    Arc::new(Http::new(options))
}
