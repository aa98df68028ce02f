//! A site beside the API, such as the console.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::header::LOCATION;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use polynym_access::Caller;
use tonic::Status;
use tonic::body::Body;

use crate::budgets::state::{ConnectionState, Reservation};
use crate::budgets::streams::OpenStream;
use crate::calls::handler::CallHandler;
use crate::calls::response_body::{ResponseBody, StreamCharge};
use crate::connect::error;
use crate::peer::Peer;
use crate::request_body;

/// A site beside the API. It limits the bodies that it reads and the time that it takes.
pub trait Site: Send + Sync + 'static {
    /// The path of the site, without the prefix of the listener, such as `/console`.
    fn path(&self) -> &'static str;

    /// The caller who is signed in by these headers of a request.
    fn caller(&self, headers: &HeaderMap) -> Option<Arc<Caller>>;

    /// Answers a request of the client at `address`.
    fn respond(
        &self,
        request: Request<Incoming>,
        address: Option<SocketAddr>,
    ) -> BoxFuture<'_, Response<Body>>;
}

/// Whether a path, without the prefix of the listener, belongs to a site.
pub fn is_at(site: &dyn Site, path: &str) -> bool {
    let rest = path.strip_prefix(site.path());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a request reads the root of a listener with this prefix, as browsers do when somebody
/// types a host alone.
pub fn is_home(method: &Method, path: &str, prefix: &str) -> bool {
    let is_read = method == Method::GET || method == Method::HEAD;
    is_read && path.strip_prefix(prefix).is_some_and(|inner| matches!(inner, "" | "/"))
}

/// The response that leads to a site below `prefix`.
pub fn redirect(prefix: &str, site: &dyn Site) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    if let Ok(location) = HeaderValue::try_from(format!("{prefix}{}", site.path())) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// Answers a request by a site. Its connection belongs to the caller who is signed in.
pub async fn answer(
    site: &dyn Site,
    handler: &CallHandler,
    connection: &Arc<ConnectionState>,
    peer: &Peer,
    request: Request<Incoming>,
) -> Response<ResponseBody> {
    let _in_flight = Reservation::for_site_request(connection);
    if let Some(caller) = site.caller(request.headers())
        && let Err(refusal) = handler.assign(&caller, connection, peer)
    {
        request_body::discard(request).await;
        return refused(&refusal, connection);
    }
    charged(site.respond(request, peer.address()).await, connection)
}

/// Charges a response to its connection: one of unknown length as a stream.
fn charged(response: Response<Body>, connection: &Arc<ConnectionState>) -> Response<ResponseBody> {
    if response.body().size_hint().exact().is_some() {
        return ResponseBody::call(response, Reservation::for_call(connection), |_| None);
    }
    match OpenStream::of_site(connection) {
        Ok(stream) => {
            let charge = StreamCharge::new(stream, Box::pin(pending()));
            ResponseBody::stream(response, charge, None, |_| None)
        }
        Err(refusal) => refused(&refusal, connection),
    }
}

fn refused(refusal: &Status, connection: &Arc<ConnectionState>) -> Response<ResponseBody> {
    ResponseBody::call(error::response(refusal), Reservation::for_call(connection), |_| None)
}
