//! The HTTP side of a server: the API over Connect, gRPC-Web and lines, and pages outside of it.

mod grpc_web;
mod origin;
mod page;
mod site;

use std::sync::Arc;

use http::header::{CONNECTION, TRANSFER_ENCODING};
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Request, Response, Uri, Version};
use http_body::Body as _;
use hyper::body::Incoming;

pub use origin::is_loopback;
pub use page::Page;
pub use site::Site;

use crate::budgets::state::{ConnectionState, Reservation};
use crate::calls::call_protocol::Refused;
use crate::calls::handler::CallHandler;
use crate::calls::response_body::ResponseBody;
use crate::connect::call::ConnectCall;
use crate::connect::request;
use crate::lines::call::LineCall;
use crate::method::{Methods, Row};
use crate::peer::Peer;
use crate::request_body;
use grpc_web::GrpcWeb;
use origin::Origins;

/// The header by which a response forbids a proxy to collect it before it forwards it.
const PROXY_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The settings of the HTTP side.
pub struct HttpOptions {
    /// The path in front of all others, such as `/polynym`; empty for none.
    pub prefix: String,
    /// The origins whose pages may call the API from a browser.
    pub allowed_origins: Vec<String>,
    /// The pages outside the API.
    pub pages: Vec<Page>,
    /// A site beside the API.
    pub site: Option<Box<dyn Site>>,
}

/// A call, by its protocol.
enum HttpCall {
    Connect(ConnectCall),
    GrpcWeb(GrpcWeb),
    Lines(LineCall),
}

/// The HTTP side of a server.
pub struct Http {
    prefix: String,
    origins: Origins,
    pages: Vec<Page>,
    site: Option<Box<dyn Site>>,
}

impl Http {
    /// The HTTP side with these settings.
    pub fn new(options: HttpOptions) -> Self {
        Self {
            prefix: options.prefix,
            origins: Origins::new(options.allowed_origins),
            pages: options.pages,
            site: options.site,
        }
    }

    /// Answers a request.
    pub async fn answer(
        &self,
        handler: &Arc<CallHandler>,
        connection: &Arc<ConnectionState>,
        peer: &Arc<Peer>,
        mut request: Request<Incoming>,
    ) -> Response<ResponseBody> {
        // A proxy in front might take the other of two lengths for the right one.
        let closes = request.version() < Version::HTTP_2
            && request.headers().contains_key(TRANSFER_ENCODING);
        let outcome = self.outside_api(&mut request, handler.needs_credentials());
        let site = self.site.as_deref().filter(|site| site::is_at(*site, request.uri().path()));
        let mut response = match (outcome, site) {
            (Ok(()), Some(site)) => site::answer(site, handler, connection, peer, request).await,
            (outcome, _) => self.answer_call(handler, connection, peer, outcome, request).await,
        };
        if closes {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if response.body().size_hint().exact().is_none() {
            response.headers_mut().insert(PROXY_BUFFERING, HeaderValue::from_static("no"));
        }
        response
    }

    /// Answers a call, or a request whose `outcome` is a response already.
    async fn answer_call(
        &self,
        handler: &Arc<CallHandler>,
        connection: &Arc<ConnectionState>,
        peer: &Arc<Peer>,
        outcome: Result<(), Refused>,
        request: Request<Incoming>,
    ) -> Response<ResponseBody> {
        let origin = self.origins.allowed(request.headers());
        let method = handler.methods.get(request.uri().path());
        let mut response = match outcome.and_then(|()| call(&handler.methods, method, &request)) {
            Ok(HttpCall::Connect(call)) => {
                handler.call(method, connection, peer, &call, request).await
            }
            Ok(HttpCall::GrpcWeb(call)) => {
                handler.call(method, connection, peer, &call, request).await
            }
            Ok(HttpCall::Lines(call)) => {
                handler.call(method, connection, peer, &call, request).await
            }
            Err(response) => {
                let reservation = Reservation::for_call(connection);
                request_body::discard(request).await;
                ResponseBody::call(*response, reservation, |_| None)
            }
        };
        if let Some(origin) = origin {
            origin::allow(origin, response.headers_mut());
        }
        response
    }

    /// Removes the prefix of a request's path. The error is the response to a request outside of
    /// the API, or to one that is refused.
    fn outside_api(
        &self,
        request: &mut Request<Incoming>,
        needs_credentials: bool,
    ) -> Result<(), Refused> {
        if let Some(preflight) = self.origins.preflight(request) {
            return Err(preflight.into());
        }
        let path = request.uri().path();
        let inner = path.strip_prefix(&self.prefix).unwrap_or_default();
        if let Some(page) = self.pages.iter().find(|page| page.is_at(inner)) {
            return Err(page.response(request).into());
        }
        let host = origin::host(request)?;
        if !needs_credentials {
            self.origins.check(host, request.headers())?;
        }
        if let Some(site) = &self.site
            && site::is_home(request.method(), path, &self.prefix)
        {
            return Err(site::redirect(&self.prefix, &**site).into());
        }
        if !inner.starts_with('/') {
            return Err(request::unknown_path(path, None).into());
        }
        if !self.prefix.is_empty() {
            *request.uri_mut() = with_path(request.uri(), inner);
        }
        Ok(())
    }
}

/// The call of a request to a method.
fn call(methods: &Methods, method: &Row, request: &Request<Incoming>) -> Result<HttpCall, Refused> {
    let Some(messages) = &method.messages else {
        let path = request.uri().path();
        return Err(request::unknown_path(path, methods.nearest(path)).into());
    };
    if let Some(lines) = method.lines
        && let Some(call) = LineCall::new(lines, messages.clone(), request)?
    {
        return Ok(HttpCall::Lines(call));
    }
    if let Some(call) = GrpcWeb::new(messages, request)? {
        request::check(request, "POST")?;
        return Ok(HttpCall::GrpcWeb(call));
    }
    request::call(messages, request).map(HttpCall::Connect)
}

/// An address with another path. Its host stays: HTTP/2 has it nowhere else.
fn with_path(uri: &Uri, path: &str) -> Uri {
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = PathAndQuery::try_from(format!("{path}{query}")).ok();
    Uri::from_parts(parts).unwrap_or_default()
}
