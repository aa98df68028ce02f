//! The page for somebody who follows a link of another site. Browsers send the cookie of a session
//! with requests of this site alone: the page loads itself again, and the request is one of this
//! site then.

use askama::Template;
use axum::body::Body;
use axum::extract::Request;
use http::header::REFRESH;
use http::{HeaderValue, Response};

use crate::context::Context;
use crate::frame::Frame;
use crate::render::{own_path, render};
use crate::words::filters;

#[derive(Template)]
#[template(path = "pages/arrival.html")]
struct ArrivalPage {
    frame: Frame,
    address: String,
}

/// The page.
pub fn page(context: Context, request: &Request) -> Response<Body> {
    let query = request.uri().query().map_or_else(String::new, |query| format!("?{query}"));
    let address = own_path(&context.base, &format!("{}{query}", context.path));
    let mut response = render(&ArrivalPage { frame: Frame::new(context, None, ""), address });
    response.headers_mut().insert(REFRESH, HeaderValue::from_static("0"));
    response
}
