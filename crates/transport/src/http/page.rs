//! Pages outside the API.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use tonic::body::Body;

use crate::connect::{call, error, request, unary};

/// Makes the content of a page.
type MakeContent = Box<dyn FnOnce() -> Content + Send>;

/// A page outside the API, for everybody who may connect. Its content is made once, for its first
/// request.
pub struct Page {
    path: &'static str,
    content_type: HeaderValue,
    content: LazyLock<Content, MakeContent>,
}

struct Content {
    plain: Bytes,
    /// None if the page is small.
    gzip: Option<Bytes>,
    etag: HeaderValue,
}

impl Page {
    /// The page at `path`, such as `/healthz`.
    pub fn new(
        path: &'static str,
        content_type: &'static str,
        content: impl FnOnce() -> Bytes + Send + 'static,
    ) -> Self {
        let make: MakeContent = Box::new(|| Content::new(content()));
        let content_type = HeaderValue::from_static(content_type);
        Self { path, content_type, content: LazyLock::new(make) }
    }

    /// Whether a request for this path is one for the page.
    pub fn is_at(&self, path: &str) -> bool {
        self.path == path
    }

    /// The response to a request.
    pub fn response<B>(&self, request: &Request<B>) -> Response<Body> {
        let method = request.method();
        if method != Method::GET && method != Method::HEAD {
            return request::wrong_http_method("GET, HEAD");
        }
        let Content { plain, gzip, etag } = &*self.content;
        let mut response = Response::new(Body::empty());
        let headers = response.headers_mut();
        headers.insert(ETAG, etag.clone());
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if is_known(etag, request.headers()) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        headers.insert(CONTENT_TYPE, self.content_type.clone());
        let accepts_gzip =
            request.headers().get_all(ACCEPT_ENCODING).iter().any(call::accepts_gzip);
        let sent = match gzip.as_ref().filter(|_| accepts_gzip) {
            Some(gzip) => {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                gzip
            }
            None => plain,
        };
        headers.insert(CONTENT_LENGTH, sent.len().into());
        if method == Method::GET {
            *response.body_mut() = error::body(sent.clone());
        }
        response
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Content {
    fn new(plain: Bytes) -> Self {
        let is_large = plain.len() >= unary::MIN_COMPRESSED_BYTES;
        let gzip = is_large.then(|| unary::compressed(&plain).ok()).flatten();
        let mut hasher = DefaultHasher::new();
        plain.hash(&mut hasher);
        // A weak etag, because the compressed page has the same one.
        let text = format!("W/\"{:016x}\"", hasher.finish());
        let etag = HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("W/\"\""));
        Self { plain, gzip, etag }
    }
}

/// Whether the client has the page with this etag.
fn is_known(etag: &HeaderValue, headers: &HeaderMap) -> bool {
    let etag = etag.to_str().unwrap_or_default();
    let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).any(|one| one == etag || one == "*")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(page: &Page, headers: &[(&'static str, &str)]) -> Response<Body> {
        let mut request = Request::get("/page");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        page.response(&request.body(()).unwrap())
    }

    #[test]
    fn a_large_page_is_compressed_and_known_by_its_etag() {
        let page = Page::new("/page", "application/json", || Bytes::from(vec![b'x'; 100_000]));
        let plain = get(&page, &[]);
        assert_eq!(plain.headers()[CONTENT_LENGTH], "100000");
        let packed = get(&page, &[("accept-encoding", "br, gzip")]);
        assert_eq!(packed.headers()[CONTENT_ENCODING], "gzip");
        assert_ne!(packed.headers()[CONTENT_LENGTH], "100000");
        let etag = plain.headers()[ETAG].to_str().unwrap();
        for known in [etag, &format!("\"other\", {etag}"), "*"] {
            let response = get(&page, &[("if-none-match", known)]);
            assert_eq!(response.status(), StatusCode::NOT_MODIFIED, "{known}");
        }
        assert_eq!(get(&page, &[("if-none-match", "\"other\"")]).status(), StatusCode::OK);
    }

    #[test]
    fn a_page_is_read_only() {
        let page = Page::new("/page", "text/plain", || Bytes::from_static(b"ok"));
        let response = page.response(&Request::post("/page").body(()).unwrap());
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.headers()["allow"], "GET, HEAD");
        let small = get(&page, &[("accept-encoding", "gzip")]);
        assert!(!small.headers().contains_key(CONTENT_ENCODING));
    }
}
