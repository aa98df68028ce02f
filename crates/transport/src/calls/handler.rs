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

use super::authorization::{Authorization, Refusal};
use super::call_protocol::CallProtocol;
use super::compute_shares::{ComputeShares, Steps, in_steps};
use super::count::CallCount;
use super::detachable::Detachable;
use super::permits::{CallPermits, PermitKind};
use super::response_body::{ResponseBody, Revoked, StreamCharge};
use super::trace::in_context;
use crate::budgets::state::{ConnectionState, Reservation, ServerUsage};
use crate::budgets::streams::{MAX_STRANGERS_STREAMS, OpenStream, StreamMethod};
use crate::eviction::EvictionQueue;
use crate::method::{MethodKind, Methods, Row};
use crate::options::{LogCalls, Options};
use crate::peer::Peer;
use crate::preface::PrefaceCheck;
use crate::request_body::{self, RequestBody};
use crate::{protocol, rich_status};
use polynym_access::{ActiveCount, Call, Caller, Permit};

/// The counter of panics.
pub const PANICS: (&str, &str) = ("polynym_panics_total", "Handlers that panicked");
/// The gauge of connections.
pub const CONNECTIONS: (&str, &str) = ("polynym_connections", "Open connections of the API");

/// The interval at which the caller of an open stream is authorized again.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The methods of a server, and the authorization of their callers.
pub struct Services {
    /// The methods.
    pub methods: Methods,
    /// The callers.
    pub authorization: Authorization,
}

/// Handles the calls of all connections.
pub struct CallHandler {
    pub methods: Methods,
    authorization: Authorization,
    permits: CallPermits,
    compute_shares: ComputeShares,
    max_connections: usize,
    timeout: Duration,
    log_calls: LogCalls,
    pub usage: Arc<ServerUsage>,
    /// Counts the connections of other protocols.
    pub preface_check: PrefaceCheck,
    /// The open connections.
    pub connections: ActiveCount,
    /// The connections without a valid call so far.
    pub unauthenticated: Arc<EvictionQueue>,
    /// The streams of clients without a credential.
    strangers: Arc<EvictionQueue>,
}

impl CallHandler {
    pub fn new(services: Services, options: Options) -> Self {
        let Services { methods, authorization } = services;
        let Options { max_connections, max_calls, .. } = options;
        let max_unauthenticated =
            if authorization.needs_credentials() { max_connections / 4 } else { usize::MAX };
        Self {
            methods,
            authorization,
            permits: CallPermits::new(max_calls),
            compute_shares: ComputeShares::default(),
            max_connections,
            timeout: options.call_timeout,
            log_calls: options.log_calls,
            usage: Arc::default(),
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
            && let Some(caller) = self.authorization.certified_caller(peer.names())
        {
            let _ = peer.assign_to(&caller, self.max_connections);
        }
    }

    /// Assigns the bytes of a connection to the caller of its client's certificate, or of all calls
    /// if they need no credential. Otherwise its first valid call does.
    pub fn assign_to_known_caller(&self, peer: &Peer, connection: &ConnectionState) {
        let is_known = !peer.names().is_empty() || !self.authorization.needs_credentials();
        if is_known && let Some(caller) = self.authorization.certified_caller(peer.names()) {
            connection.assign_to(&caller);
        }
    }

    /// Assigns a connection and its bytes to a caller who has a credential. The first one stays.
    ///
    /// # Errors
    /// The caller has its share of connections.
    pub fn assign(
        &self,
        caller: &Caller,
        connection: &ConnectionState,
        peer: &Peer,
    ) -> Result<(), Status> {
        peer.assign_to(caller, self.max_connections)?;
        connection.assign_to(caller);
        Ok(())
    }

    /// Whether callers need credentials.
    pub fn needs_credentials(&self) -> bool {
        self.authorization.needs_credentials()
    }

    /// Answers a call. Refuses an invalid or unauthorized one by its headers, before it reads the
    /// message.
    pub async fn call<P: CallProtocol>(
        self: &Arc<Self>,
        method: &Arc<Row>,
        connection: &Arc<ConnectionState>,
        peer: &Arc<Peer>,
        rpc: &P,
        mut request: Request<Incoming>,
    ) -> Response<ResponseBody> {
        let timeout = match rpc.validate(&request) {
            Ok(timeout) => timeout.map_or(self.timeout, |timeout| timeout.min(self.timeout)),
            Err(response) => {
                let reservation = Reservation::for_call(connection);
                return ResponseBody::call(*response, reservation, rpc.end_frame());
            }
        };
        let mut count = CallCount::begin(method, request.headers(), self.log_calls, peer.address());
        let call = match self.admit(method, connection, peer, &mut request, &mut count) {
            Ok(call) => call,
            Err(refusal) => return refused(connection, peer, rpc, refusal, request, count).await,
        };
        let steps = call.as_deref().and_then(|call| self.steps(method, connection, call));
        if let MethodKind::Stream { limit, is_finite } = method.kind {
            let streams = StreamMethod { index: method.index, limit, is_finite };
            let opened = match &call {
                Some(call) => OpenStream::of_caller(connection, streams, call),
                None => OpenStream::of_stranger(connection, &self.strangers),
            };
            return match opened {
                Ok(stream) => {
                    let opening = Opening { stream, steps, timeout, count };
                    self.open_stream(method, opening, peer, rpc, request).await
                }
                Err(refusal) => refused(connection, peer, rpc, refusal, request, count).await,
            };
        }

        let mut reservation = Reservation::for_call(connection);
        let answer = async {
            let limit = method.max_message_bytes;
            let request = rpc.read_message(request, limit, &mut reservation).await?;
            // Takes a permit once the message has arrived: slow senders cannot starve others.
            let permit = match PermitKind::taken_by(method.kind).zip(call.as_deref()) {
                Some(_) if !connection.bytes.has_room() => return Err(protocol::answers_unread()),
                Some((kind, call)) => Some(self.permits.take(kind, call)?),
                None => None,
            };
            Ok(self.execute(method, request, steps, permit).await)
        };
        let (span, context) = (count.log_span(), count.trace_context());
        let answer = self.with_deadline(method, timeout, answer).instrument(span);
        let response = in_context(context, answer).await;
        count.end_with_response(&response);

        let response = rpc.respond(response, Some(&mut reservation)).await;
        ResponseBody::call(response, reservation, rpc.end_frame())
    }

    /// Executes a call. A mutation goes on if its caller leaves, and keeps its permit: callers that
    /// leave cannot begin more than others.
    async fn execute(
        &self,
        method: &Row,
        request: Request<RequestBody>,
        steps: Option<Steps>,
        permit: Option<Permit<2>>,
    ) -> Response<Body> {
        let call = (method.handler)(request);
        if !method.is_mutation() || steps.is_some() {
            let _permit = permit;
            return in_steps(steps, call).await;
        }
        let mutation = async move {
            let _permit = permit;
            call.await
        };
        Detachable::new(mutation, self.timeout).await
    }

    /// The steps of a call that may compute for long. Callers share the processors; without
    /// credentials, connections do.
    fn steps(&self, method: &Row, connection: &ConnectionState, caller: &Caller) -> Option<Steps> {
        method.is_scan.then(|| self.compute_shares.steps(connection.compute_lock_of(caller)))
    }

    /// Checks a call by its headers: its credential and role, then its caller's limits.
    fn admit(
        &self,
        method: &Row,
        connection: &ConnectionState,
        peer: &Peer,
        request: &mut Request<Incoming>,
        count: &mut CallCount,
    ) -> Result<Option<Arc<Call>>, Status> {
        let authorized = self.authorization.authorize(method, request, peer.names());
        let call = authorized.map_err(|Refusal { call, status }| {
            count.set_call(call);
            status
        })?;
        count.set_call(call.clone());
        let Some(call) = call else { return Ok(None) };
        self.assign(&call, connection, peer)?;
        if let Some(kind) = PermitKind::taken_by(method.kind) {
            self.permits.check(kind, &call)?;
        }
        call.admit_call().map_err(protocol::rate_limited)?;
        Ok(Some(call))
    }

    /// Opens a stream, which takes no permit. It ends once its caller leaves or loses access.
    async fn open_stream<P: CallProtocol>(
        self: &Arc<Self>,
        method: &Arc<Row>,
        Opening { stream, steps, timeout, mut count }: Opening,
        peer: &Arc<Peer>,
        rpc: &P,
        mut request: Request<Incoming>,
    ) -> Response<ResponseBody> {
        let revoked = self.clone().revocation(method.clone(), peer.clone(), &request);
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
            let limit = method.max_message_bytes;
            let streaming = rpc.open(request, limit, self.timeout, &stream).await?;
            Ok((method.handler)(streaming).await)
        };
        let (span, context) = (count.log_span(), count.trace_context());
        let answer = self.with_deadline(method, timeout, answer).instrument(span);
        let response = in_context(context, answer).await;
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
        method: Arc<Row>,
        peer: Arc<Peer>,
        request: &Request<Incoming>,
    ) -> impl Future<Output = Status> + Send + use<> {
        let mut headers_only = Request::new(());
        *headers_only.uri_mut() = request.uri().clone();
        *headers_only.headers_mut() = request.headers().clone();
        async move {
            loop {
                tokio::time::sleep(RECHECK_INTERVAL).await;
                let authorized =
                    self.authorization.authorize(&method, &mut headers_only, peer.names());
                if let Err(refusal) = authorized {
                    return refusal.status;
                }
            }
        }
    }

    /// Returns the answer, or an error status if the handler exceeds the timeout or panics.
    async fn with_deadline(
        &self,
        method: &Row,
        timeout: Duration,
        answer: impl Future<Output = Result<Response<Body>, Status>>,
    ) -> Response<Body> {
        match tokio::time::timeout(timeout, AssertUnwindSafe(answer).catch_unwind()).await {
            Ok(Ok(Ok(response))) => protocol::with_details(response),
            Ok(Ok(Err(status))) => status.into_http(),
            Ok(Err(_)) => panicked(),
            Err(_) => protocol::deadline(method.is_mutation()).into_http(),
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
    connection: &Arc<ConnectionState>,
    peer: &Peer,
    rpc: &P,
    refusal: Status,
    request: Request<Incoming>,
    mut count: CallCount,
) -> Response<ResponseBody> {
    count.end(&refusal);
    let mut reservation = Reservation::for_call(connection);
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
