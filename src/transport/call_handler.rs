//! The handling of every call: the checks of its request, permits, the deadline, and the recovery
//! from panics.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use http::{Request, Response};
use hyper::body::Incoming;
use tonic::body::Body;
use tonic::{Code, Status};
use tracing::Instrument;

use super::call_count::{CallCount, LogCalls};
use super::call_permits::CallPermits;
use super::memory_budget::{ConnectionBudget, GlobalBudget, OpenStream, Reservation};
use super::options::Options;
use super::peer::Peer;
use super::preface::PrefaceCheck;
use super::request_body::RequestBody;
use super::response_body::ResponseBody;
use super::routes::{Permits, Refusal, Routes, Target};
use super::strangers::Strangers;
use super::{protocol, request_body, request_check, rich_status};
use crate::access::{Call, Counted};

/// The counter of panics: its name, and what it counts.
pub const PANICS: (&str, &str) = ("polynym_panics_total", "Handlers that panicked");
/// The gauge of connections.
pub const CONNECTIONS: (&str, &str) = ("polynym_connections", "Open connections of the API");

/// The pause between two checks of the caller of an open stream.
const RECHECK: Duration = Duration::from_secs(1);

pub struct CallHandler<R> {
    routes: R,
    permits: CallPermits,
    max_connections: usize,
    timeout: Duration,
    log_calls: LogCalls,
    /// The budget of all connections.
    pub total: Arc<GlobalBudget>,
    /// The connections that were closed since they speak something else.
    pub preface_check: PrefaceCheck,
    /// The open connections.
    pub connections: Counted,
    /// The connections that have made no valid call yet.
    pub strangers: Arc<Strangers>,
}

impl<R: Routes> CallHandler<R> {
    pub fn new(routes: R, options: Options) -> Self {
        let Options { max_connections, max_calls, .. } = options;
        let strangers = if routes.needs_credentials() { max_connections / 4 } else { usize::MAX };
        Self {
            routes,
            permits: CallPermits::new(max_calls),
            max_connections,
            timeout: options.call_timeout,
            log_calls: options.log_calls,
            total: Arc::default(),
            preface_check: PrefaceCheck::default(),
            connections: Counted::default(),
            strangers: Strangers::new(strangers),
        }
    }

    /// Counts a connection for the caller of its client's certificate. One beyond the caller's
    /// share stays without a caller.
    pub fn count_certified(&self, peer: &Peer) {
        if !peer.names().is_empty()
            && let Some(caller) = self.routes.certified(peer.names())
        {
            let _ = peer.belongs_to(&caller, self.max_connections);
        }
    }

    /// Answers a call. A call that is refused costs next to nothing.
    pub async fn call(
        self: &Arc<Self>,
        budget: &Arc<ConnectionBudget>,
        peer: &Arc<Peer>,
        mut request: Request<Incoming>,
    ) -> Response<ResponseBody> {
        let target = R::Target::of(request.uri().path());
        let timeout = match request_check::validate(&request) {
            Ok(timeout) => timeout.map_or(self.timeout, |timeout| timeout.min(self.timeout)),
            Err(refusal) => return ResponseBody::call(refusal.into(), Reservation::call(budget)),
        };
        let mut count = CallCount::begin(target, request.headers(), self.log_calls);
        let call = match self.admit(target, peer, &mut request, &mut count) {
            Ok(call) => call,
            Err(refusal) => {
                count.end(&refusal);
                let reservation = Reservation::call(budget);
                let discard = request_body::discard(request.into_body());
                if refusal.code() == Code::Unauthenticated {
                    tokio::join!(discard, tokio::time::sleep(peer.refusal_delay()));
                } else {
                    discard.await;
                }
                return ResponseBody::call(refusal.into_http(), reservation);
            }
        };
        if target.is_stream() {
            return self.open(budget, peer, timeout, request, count).await;
        }

        let mut reservation = Reservation::call(budget);
        let answer = async {
            let request =
                request_body::read_message(request, target.message_bytes(), &mut reservation)
                    .await?;
            // Takes a permit once the message has arrived: slow senders cannot starve others.
            let _permit = match target.permits() {
                Some(_) if !budget.has_room() => return Err(protocol::unread()),
                Some(kind) => Some(self.permits.take(kind, call.as_deref().map(Call::caller))?),
                None => None,
            };
            Ok(self.routes.call(target, request).await)
        };
        let span = count.log_span();
        let response = self.bounded(target, timeout, answer).instrument(span).await;
        count.answered(&response);

        ResponseBody::call(response, reservation)
    }

    /// Checks by its headers whether a call may be made: its credential and its role, then what its
    /// caller uses of the server.
    fn admit(
        &self,
        target: R::Target,
        peer: &Peer,
        request: &mut Request<Incoming>,
        count: &mut CallCount,
    ) -> Result<Option<Arc<Call>>, Status> {
        let call = self.routes.authorize(request, peer.names());
        let call = call.map_err(|Refusal { call, status }| {
            count.call(call);
            status
        })?;
        count.call(call.clone());
        let Some(call) = call else { return Ok(None) };
        peer.belongs_to(&call, self.max_connections)?;
        if let Some(kind) = target.permits() {
            self.permits.check(kind, &call)?;
        }
        call.take_call().map_err(protocol::rate_spent)?;
        Ok(Some(call))
    }

    /// Opens a stream, which stays open until its caller leaves or loses its right to it. It takes
    /// no call's permit.
    async fn open(
        self: &Arc<Self>,
        budget: &Arc<ConnectionBudget>,
        peer: &Arc<Peer>,
        timeout: Duration,
        request: Request<Incoming>,
        mut count: CallCount,
    ) -> Response<ResponseBody> {
        let target = R::Target::of(request.uri().path());
        let revoked = Box::pin(self.clone().revoked(peer.clone(), &request));
        let Some(stream) = OpenStream::new(budget) else {
            let refusal = protocol::too_many_streams();
            count.end(&refusal);
            return ResponseBody::call(refusal.into_http(), Reservation::call(budget));
        };

        let answer = async {
            let request = request.map(|body| RequestBody::open(body, self.timeout));
            Ok(self.routes.call(target, request).await)
        };
        let span = count.log_span();
        let response = self.bounded(target, timeout, answer).instrument(span).await;
        count.answered(&response);
        ResponseBody::stream(response, stream, revoked)
    }

    /// Returns the refusal of a stream once its caller may not open it any more.
    fn revoked(
        self: Arc<Self>,
        peer: Arc<Peer>,
        request: &Request<Incoming>,
    ) -> impl Future<Output = Status> + Send + use<R> {
        let mut again = Request::new(());
        *again.uri_mut() = request.uri().clone();
        *again.headers_mut() = request.headers().clone();
        async move {
            loop {
                tokio::time::sleep(RECHECK).await;
                if let Err(refusal) = self.routes.authorize(&mut again, peer.names()) {
                    return refusal.status;
                }
            }
        }
    }

    /// The answer within its time, whatever happens.
    async fn bounded(
        &self,
        target: R::Target,
        timeout: Duration,
        answer: impl Future<Output = Result<Response<Body>, Status>>,
    ) -> Response<Body> {
        match tokio::time::timeout(timeout, AssertUnwindSafe(answer).catch_unwind()).await {
            Ok(Ok(Ok(response))) => protocol::translated(response),
            Ok(Ok(Err(status))) => status.into_http(),
            Ok(Err(_)) => panicked(),
            Err(_) => protocol::deadline(target.permits() == Some(Permits::Mutations)).into_http(),
        }
    }

    /// Sets the gauges of what is in use.
    pub fn set_gauges(&self) {
        metrics::gauge!(CONNECTIONS.0).set(self.connections.get() as f64);
        self.permits.set_gauges();
    }
}

/// The process's panic hook logs the panic itself; callers get no details.
fn panicked() -> Response<Body> {
    metrics::counter!(PANICS.0).increment(1);
    tracing::error!("a handler panicked");
    rich_status::internal().into_http()
}
