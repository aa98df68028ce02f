//! Pages outside the API.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Method, Response};
use tonic::body::Body;

use crate::connect::{error, request};

/// A page outside the API, for everybody who may connect.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The path, such as `/healthz`.
    pub path: &'static str,
    /// The content type.
    pub content_type: &'static str,
    /// Returns the content.
    pub content: fn() -> Bytes,
}

impl Page {
    /// The response to a request with this HTTP method.
    pub fn response(&self, method: &Method) -> Response<Body> {
        if method != Method::GET && method != Method::HEAD {
            return request::wrong_http_method("GET, HEAD");
        }
        let content = (self.content)();
        let length = content.len();
        let is_sent = method == Method::GET;
        let body = if is_sent { error::body(content) } else { Body::empty() };
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(CONTENT_LENGTH, length.into());
        response
    }
}
