//! The page that leads to the provider by which people sign in. It is a page and no redirect, since
//! forms of the console may lead to the console alone (CSP level 3, "form-action").

use askama::Template;
use axum::body::Body;
use http::header::REFRESH;
use http::{HeaderValue, Response};
use url::Url;

use crate::context::Context;
use crate::frame::Frame;
use crate::render::render;
use crate::words::filters;

#[derive(Template)]
#[template(path = "pages/leaving.html")]
struct LeavingPage {
    frame: Frame,
    title: &'static str,
    text: &'static str,
    address: String,
}

/// The page.
pub fn page(
    context: Context,
    address: &Url,
    title: &'static str,
    text: &'static str,
) -> Response<Body> {
    let frame = Frame::new(context, None, "");
    let mut response = render(&LeavingPage { frame, title, text, address: address.to_string() });
    if let Ok(refresh) = HeaderValue::try_from(format!("0; url={address}")) {
        response.headers_mut().insert(REFRESH, refresh);
    }
    response
}
