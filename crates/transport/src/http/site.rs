//! A site beside the API, such as the console.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body::Body as _;
use hyper::body::Incoming;
use tonic::body::Body;

use crate::calls::response_body::{ResponseBody, StreamCharge};
use crate::memory_budget::{ConnectionBudget, Reservation};
use crate::streams::OpenStream;

/// A site beside the API. It limits the bodies that it reads and the time that it takes.
pub trait Site: Send + Sync + 'static {
    /// Whether a path, without the prefix of the listener, belongs to the site.
    fn is_at(&self, path: &str) -> bool;

    /// Answers a request of the client at `address`.
    fn respond(
        &self,
        request: Request<Incoming>,
        address: Option<SocketAddr>,
    ) -> BoxFuture<'_, Response<Body>>;
}

/// Charges a response to its connection: one of unknown length as a stream.
pub fn charged(response: Response<Body>, budget: &Arc<ConnectionBudget>) -> Response<ResponseBody> {
    if response.body().size_hint().exact().is_some() {
        return ResponseBody::call(response, Reservation::for_call(budget), |_| None);
    }
    match OpenStream::of_site(budget) {
        Ok(stream) => {
            let charge = StreamCharge::new(stream, Box::pin(pending()));
            ResponseBody::stream(response, charge, None, |_| None)
        }
        Err(status) => {
            let refusal = crate::connect::error::response(&status);
            ResponseBody::call(refusal, Reservation::for_call(budget), |_| None)
        }
    }
}
