//! The HTTP listener: the API over Connect, and the pages beside it.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use polynym_proto::DESCRIPTORS;
use polynym_transport::http::{Http, HttpOptions, Page};

/// The pages outside the API.
static PAGES: [Page; 1] = [Page {
    path: "/healthz",
    content_type: "text/plain; charset=utf-8",
    content: || Bytes::from_static(b"ok\n"),
}];

/// What an HTTP listener serves: the API below `prefix`, also for web pages of `allowed_origins`.
///
/// # Errors
/// The descriptors of the API cannot be read.
pub fn api(prefix: String, allowed_origins: Vec<String>) -> io::Result<Arc<Http>> {
    let options = HttpOptions { prefix, allowed_origins, descriptors: DESCRIPTORS, pages: &PAGES };
    Http::new(options).map(Arc::new).map_err(io::Error::other)
}
