//! The handling of every call: the checks of its request, permits, the deadline, and the recovery
//! from panics.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use http::{Request, Response};
use hyper::body::Incoming;
use tonic::Status;
use tonic::body::Body;

use super::memory_budget::{ConnectionBudget, GlobalBudget, OpenStream, Reservation};
use super::preface::PrefaceCheck;
use super::request_body::RequestBody;
use super::response_body::ResponseBody;
use super::routes::{Permits, Routes, Target};
use super::{protocol, request_body, request_check, rich_status};

/// The counter of panics: its name, and what it counts.
pub const PANICS: (&str, &str) = ("polynym_panics_total", "Handlers that panicked");

pub struct CallHandler<R> {
    routes: R,
    reads: CallPermits,
    mutations: CallPermits,
    timeout: Duration,
    /// The budget of all connections.
    pub total: Arc<GlobalBudget>,
    /// The connections that were closed since they speak something else.
    pub preface_check: PrefaceCheck,
}

impl<R: Routes> CallHandler<R> {
    pub fn new(routes: R, max_calls: usize, timeout: Duration) -> Self {
        let permits = || CallPermits { free: AtomicUsize::new(max_calls) };
        Self {
            routes,
            reads: permits(),
            mutations: permits(),
            timeout,
            total: Arc::default(),
            preface_check: PrefaceCheck::default(),
        }
    }

    /// Answers a call. A call that is refused costs next to nothing.
    pub async fn call(
        &self,
        budget: &Arc<ConnectionBudget>,
        mut request: Request<Incoming>,
    ) -> Response<ResponseBody> {
        let target = R::Target::of(request.uri().path());
        let timeout = match request_check::validate(&request) {
            Ok(timeout) => timeout.map_or(self.timeout, |timeout| timeout.min(self.timeout)),
            Err(refusal) => return ResponseBody::call(refusal.into(), Reservation::call(budget)),
        };
        if let Err(refusal) = self.routes.authorize(&mut request) {
            return ResponseBody::call(refusal.into_http(), Reservation::call(budget));
        }
        if target.is_stream() {
            return self.open(budget, target, timeout, request).await;
        }

        let mut reservation = Reservation::call(budget);
        let answer = async {
            let request =
                request_body::read_message(request, target.message_bytes(), &mut reservation)
                    .await?;
            // Takes a permit once the message has arrived: slow senders cannot starve others.
            let _permit = match self.permits(target) {
                Some(permits) => Some(permits.take().ok_or_else(protocol::overloaded)?),
                None => None,
            };
            Ok(self.routes.call(target, request).await)
        };
        let response = self.bounded(target, timeout, answer).await;

        ResponseBody::call(response, reservation)
    }

    /// Opens a stream, which stays open until its caller leaves. It takes no call's permit.
    async fn open(
        &self,
        budget: &Arc<ConnectionBudget>,
        target: R::Target,
        timeout: Duration,
        request: Request<Incoming>,
    ) -> Response<ResponseBody> {
        let Some(stream) = OpenStream::new(budget) else {
            return ResponseBody::call(
                protocol::too_many_streams().into_http(),
                Reservation::call(budget),
            );
        };

        let answer = async {
            let request = request.map(|body| RequestBody::open(body, self.timeout));
            Ok(self.routes.call(target, request).await)
        };
        ResponseBody::stream(self.bounded(target, timeout, answer).await, stream)
    }

    fn permits(&self, target: R::Target) -> Option<&CallPermits> {
        Some(match target.permits()? {
            Permits::Reads => &self.reads,
            Permits::Mutations => &self.mutations,
        })
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
}

/// The process's panic hook logs the panic itself; callers get no details.
fn panicked() -> Response<Body> {
    metrics::counter!(PANICS.0).increment(1);
    tracing::error!("a handler panicked");
    rich_status::internal().into_http()
}

/// Permits for calls under way. A call that gets none is refused.
struct CallPermits {
    free: AtomicUsize,
}

struct CallPermit<'a>(&'a CallPermits);

impl CallPermits {
    fn take(&self) -> Option<CallPermit<'_>> {
        let taken = self
            .free
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(1));
        taken.ok().map(|_| CallPermit(self))
    }
}

impl Drop for CallPermit<'_> {
    fn drop(&mut self) {
        self.0.free.fetch_add(1, Ordering::Relaxed);
    }
}
