//! Handles every call: checks its request, takes a permit, enforces the deadline and recovers from
//! panics.

use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use http::{Request, Response};
use hyper::body::Incoming;
use tonic::body::Body;
use tonic::{Code, Status};
use tracing::Instrument;

use super::call_protocol::CallProtocol;
use super::count::CallCount;
use super::detachable::Detachable;
use super::permits::CallPermits;
use super::response_body::{ResponseBody, Revoked, StreamCharge};
use super::turns::{Steps, Turns, in_steps};
use crate::eviction::EvictionQueue;
use crate::memory_budget::{ConnectionBudget, GlobalBudget, Reservation};
use crate::options::{LogCalls, Options};
use crate::peer::Peer;
use crate::preface::PrefaceCheck;
use crate::request_body::{self, RequestBody};
use crate::routes::{PermitKind, Refusal, Routes, Target};
use crate::streams::{MAX_STRANGERS_STREAMS, OpenStream, StreamMethod};
use crate::{protocol, rich_status};
use polynym_access::{ActiveCount, Call, Caller, Permit};

/// The counter of panics.
pub const PANICS: (&str, &str) = ("polynym_panics_total", "Handlers that panicked");
/// The gauge of connections.
pub const CONNECTIONS: (&str, &str) = ("polynym_connections", "Open connections of the API");

/// The interval at which the caller of an open stream is authorized again.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

pub struct CallHandler<R> {
    routes: R,
    permits: CallPermits,
    turns: Turns,
    max_connections: usize,
    timeout: Duration,
    log_calls: LogCalls,
    pub global_budget: Arc<GlobalBudget>,
    /// Counts the connections of other protocols.
    pub preface_check: PrefaceCheck,
    /// The open connections.
    pub connections: ActiveCount,
    /// The connections without a valid call so far.
    pub unauthenticated: Arc<EvictionQueue>,
    /// The streams of clients without a credential.
    strangers: Arc<EvictionQueue>,
}

impl<R: Routes> CallHandler<R> {
    pub fn new(routes: R, options: Options) -> Self {
        let Options { max_connections, max_calls, .. } = options;
        let max_unauthenticated =
            if routes.needs_credentials() { max_connections / 4 } else { usize::MAX };
        Self {
            routes,
            permits: CallPermits::new(max_calls),
            turns: Turns::default(),
            max_connections,
            timeout: options.call_timeout,
            log_calls: options.log_calls,
            global_budget: Arc::default(),
            preface_check: PrefaceCheck::default(),
            connections: ActiveCount::default(),
            unauthenticated: EvictionQueue::new(max_unauthenticated),
            strangers: EvictionQueue::new(MAX_STRANGERS_STREAMS),
        }
    }

    /// Assigns a connection to the caller of its client's certificate. If the caller already has
    /// its share of connections, the first call is refused.
    pub fn count_certified(&self, peer: &Peer) {
        if !peer.names().is_empty()
            && let Some(caller) = self.routes.certified_caller(peer.names())
        {
            let _ = peer.assign_to(&caller, self.max_connections);
        }
    }

    /// Assigns the bytes of a connection to the caller of its client's certificate, or of all calls
    /// if they need no credential. Otherwise its first valid call does.
    pub fn assign_budget(&self, peer: &Peer, budget: &ConnectionBudget) {
        let is_known = !peer.names().is_empty() || !self.routes.needs_credentials();
        if is_known && let Some(caller) = self.routes.certified_caller(peer.names()) {
            budget.assign_to(&caller);
        }
    }

    /// Assigns a connection and its bytes to a caller who has a credential. The first one stays.
    ///
    /// # Errors
    /// The caller has its share of connections.
    pub fn assign(
        &self,
        caller: &Caller,
        budget: &ConnectionBudget,
        peer: &Peer,
    ) -> Result<(), Status> {
        peer.assign_to(caller, self.max_connections)?;
        budget.assign_to(caller);
        Ok(())
    }

    /// Whether callers need credentials.
    pub fn needs_credentials(&self) -> bool {
        self.routes.needs_credentials()
    }

    /// Answers a call. Refuses an invalid or unauthorized one by its headers, before it reads the
    /// message.
    pub async fn call<P: CallProtocol>(
        self: &Arc<Self>,
        budget: &Arc<ConnectionBudget>,
        peer: &Arc<Peer>,
        rpc: &P,
        mut request: Request<Incoming>,
    ) -> Response<ResponseBody> {
        let target = R::Target::from_path(request.uri().path());
        let timeout = match rpc.validate(&request) {
            Ok(timeout) => timeout.map_or(self.timeout, |timeout| timeout.min(self.timeout)),
            Err(response) => {
                let reservation = Reservation::for_call(budget);
                return ResponseBody::call(*response, reservation, rpc.end_frame());
            }
        };
        let mut count = CallCount::begin(target, request.headers(), self.log_calls, peer.address());
        let call = match self.admit(target, budget, peer, &mut request, &mut count) {
            Ok(call) => call,
            Err(refusal) => return refused(budget, peer, rpc, refusal, request, count).await,
        };
        let steps = call.as_deref().and_then(|call| self.steps(target, budget, call));
        if let Some(limit) = target.max_streams() {
            let (index, is_finite) = (target.index(), target.is_finite());
            let method = StreamMethod { index, limit, is_finite };
            let opened = match &call {
                Some(call) => OpenStream::of_caller(budget, method, call),
                None => OpenStream::of_stranger(budget, &self.strangers),
            };
            return match opened {
                Ok(stream) => {
                    let opening = Opening { stream, steps, timeout, count };
                    self.open_stream(opening, peer, rpc, request).await
                }
                Err(refusal) => refused(budget, peer, rpc, refusal, request, count).await,
            };
        }

        let mut reservation = Reservation::for_call(budget);
        let answer = async {
            let limit = target.max_message_bytes();
            let request = rpc.read_message(request, limit, &mut reservation).await?;
            // Takes a permit once the message has arrived: slow senders cannot starve others.
            let permit = match target.permit_kind().zip(call.as_deref()) {
                Some(_) if !budget.has_room() => return Err(protocol::answers_unread()),
                Some((kind, call)) => Some(self.permits.take(kind, call)?),
                None => None,
            };
            Ok(self.execute(target, request, steps, permit).await)
        };
        let span = count.log_span();
        let response = self.with_deadline(target, timeout, answer).instrument(span).await;
        count.end_with_response(&response);

        let response = rpc.respond(response, Some(&mut reservation)).await;
        ResponseBody::call(response, reservation, rpc.end_frame())
    }

    /// Executes a call. A mutation goes on if its caller leaves, and keeps its permit: callers that
    /// leave cannot begin more than others.
    async fn execute(
        self: &Arc<Self>,
        target: R::Target,
        request: Request<RequestBody>,
        steps: Option<Steps>,
        permit: Option<Permit<2>>,
    ) -> Response<Body> {
        if target.permit_kind() != Some(PermitKind::Mutation) || steps.is_some() {
            let _permit = permit;
            return in_steps(steps, self.routes.call(target, request)).await;
        }
        let handler = self.clone();
        let mutation = async move {
            let _permit = permit;
            handler.routes.call(target, request).await
        };
        Detachable::new(mutation, self.timeout).await
    }

    /// The steps of a call that may compute for long. Callers take turns; without credentials,
    /// connections do.
    fn steps(
        &self,
        target: R::Target,
        budget: &ConnectionBudget,
        caller: &Caller,
    ) -> Option<Steps> {
        target.is_scan().then(|| self.turns.steps(budget.turn_of(caller)))
    }

    /// Checks a call by its headers: its credential and role, then its caller's limits.
    fn admit(
        &self,
        target: R::Target,
        budget: &ConnectionBudget,
        peer: &Peer,
        request: &mut Request<Incoming>,
        count: &mut CallCount,
    ) -> Result<Option<Arc<Call>>, Status> {
        let authorized = self.routes.authorize(request, peer.names());
        let call = authorized.map_err(|Refusal { call, status }| {
            count.set_call(call);
            status
        })?;
        count.set_call(call.clone());
        let Some(call) = call else { return Ok(None) };
        self.assign(&call, budget, peer)?;
        if let Some(kind) = target.permit_kind() {
            self.permits.check(kind, &call)?;
        }
        call.admit_call().map_err(protocol::rate_limited)?;
        Ok(Some(call))
    }

    /// Opens a stream, which takes no permit. It ends once its caller leaves or loses access.
    async fn open_stream<P: CallProtocol>(
        self: &Arc<Self>,
        Opening { stream, steps, timeout, mut count }: Opening,
        peer: &Arc<Peer>,
        rpc: &P,
        mut request: Request<Incoming>,
    ) -> Response<ResponseBody> {
        let target = R::Target::from_path(request.uri().path());
        let revoked = self.clone().revocation(peer.clone(), &request);
        let (evicted, ended) = (stream.evicted(), stream.ended());
        let mut end: Revoked = Box::pin(async move {
            tokio::select! {
                refusal = revoked => refusal,
                () = evicted => protocol::stream_evicted(),
                status = ended => status,
            }
        });
        if let Some(permit) = stream.permit() {
            request.extensions_mut().insert(permit.clone());
        }

        let answer = async {
            let limit = target.max_message_bytes();
            let streaming = rpc.open(request, limit, self.timeout, &stream).await?;
            Ok(self.routes.call(target, streaming).await)
        };
        let span = count.log_span();
        let response = self.with_deadline(target, timeout, answer).instrument(span).await;
        count.end_with_response(&response);

        // A response may wait for the request: its caller may lose access before it.
        let response = tokio::select! {
            response = rpc.respond(response, None) => response,
            refusal = &mut end => {
                end = Box::pin(pending());
                rpc.respond(refusal.into_http(), None).await
            }
        };
        ResponseBody::stream(response, StreamCharge::new(stream, end), steps, rpc.end_frame())
    }

    /// Waits until the caller of a stream loses access. Returns the status of the refusal.
    fn revocation(
        self: Arc<Self>,
        peer: Arc<Peer>,
        request: &Request<Incoming>,
    ) -> impl Future<Output = Status> + Send + use<R> {
        let mut headers_only = Request::new(());
        *headers_only.uri_mut() = request.uri().clone();
        *headers_only.headers_mut() = request.headers().clone();
        async move {
            loop {
                tokio::time::sleep(RECHECK_INTERVAL).await;
                if let Err(refusal) = self.routes.authorize(&mut headers_only, peer.names()) {
                    return refusal.status;
                }
            }
        }
    }

    /// Returns the answer, or an error status if the handler exceeds the timeout or panics.
    async fn with_deadline(
        &self,
        target: R::Target,
        timeout: Duration,
        answer: impl Future<Output = Result<Response<Body>, Status>>,
    ) -> Response<Body> {
        match tokio::time::timeout(timeout, AssertUnwindSafe(answer).catch_unwind()).await {
            Ok(Ok(Ok(response))) => protocol::with_details(response),
            Ok(Ok(Err(status))) => status.into_http(),
            Ok(Err(_)) => panicked(),
            Err(_) => {
                protocol::deadline(target.permit_kind() == Some(PermitKind::Mutation)).into_http()
            }
        }
    }

    /// Sets the gauges of connections and permits.
    pub fn set_gauges(&self) {
        metrics::gauge!(CONNECTIONS.0).set(self.connections.get() as f64);
        self.permits.set_gauges();
    }
}

/// A call that opens a stream.
struct Opening {
    stream: OpenStream,
    steps: Option<Steps>,
    timeout: Duration,
    count: CallCount,
}

/// Answers a call that is refused by its headers.
async fn refused<P: CallProtocol>(
    budget: &Arc<ConnectionBudget>,
    peer: &Peer,
    rpc: &P,
    refusal: Status,
    request: Request<Incoming>,
    mut count: CallCount,
) -> Response<ResponseBody> {
    count.end(&refusal);
    let mut reservation = Reservation::for_call(budget);
    let discard = request_body::discard(request);
    if refusal.code() == Code::Unauthenticated {
        tokio::join!(discard, tokio::time::sleep(peer.refusal_delay()));
    } else {
        discard.await;
    }
    let response = rpc.respond(refusal.into_http(), Some(&mut reservation)).await;
    ResponseBody::call(response, reservation, rpc.end_frame())
}

/// The process's panic hook logs the details; callers get none.
fn panicked() -> Response<Body> {
    metrics::counter!(PANICS.0).increment(1);
    tracing::error!("a handler panicked");
    rich_status::internal().into_http()
}
