//! What every call passes: a limit of calls under way, a deadline, and a net for panics.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use http::{HeaderMap, Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::body::Body;
use tonic::codegen::Bytes;
use tonic::{Code, Status};

use super::router::Router;
use super::status;

pub struct Guard {
    router: Router,
    calls: Arc<Semaphore>,
    timeout: Duration,
    panics: AtomicU64,
}

impl Guard {
    pub fn new(router: Router, max_calls: usize, timeout: Duration) -> Self {
        Self { router, calls: Arc::new(Semaphore::new(max_calls)), timeout, panics: AtomicU64::new(0) }
    }

    /// Answers a call. A call that is refused costs next to nothing.
    pub async fn call(&self, request: Request<Incoming>) -> Response<Held> {
        let Ok(permit) = self.calls.clone().try_acquire_owned() else {
            return Held::response(status::overloaded().into_http(), None);
        };
        let timeout = caller_timeout(request.headers()).map_or(self.timeout, |timeout| timeout.min(self.timeout));
        let answer = AssertUnwindSafe(self.router.call(request)).catch_unwind();
        let response = match tokio::time::timeout(timeout, answer).await {
            Ok(Ok(response)) => with_own_codes(response),
            Ok(Err(_)) => self.panicked(),
            Err(_) => status::deadline().into_http(),
        };
        Held::response(response, Some(permit))
    }

    /// The panic itself is told by the process's hook; a caller learns nothing of it.
    fn panicked(&self) -> Response<Body> {
        let panics = self.panics.fetch_add(1, Ordering::Relaxed) + 1;
        tracing::error!(panics, "a handler panicked");
        status::internal().into_http()
    }
}

/// A response that counts as under way until it is sent.
pub struct Held {
    body: Body,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Held {
    fn response(response: Response<Body>, permit: Option<OwnedSemaphorePermit>) -> Response<Self> {
        response.map(|body| Self { body, _permit: permit })
    }
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The RPC library answers a message over the limit with OUT_OF_RANGE, which this API has no use for.
fn with_own_codes(response: Response<Body>) -> Response<Body> {
    match Status::from_header_map(response.headers()) {
        Some(status) if status.code() == Code::OutOfRange => status::message_too_large(status.message()).into_http(),
        _ => response,
    }
}

/// The time that the caller gives a call: at most eight digits and a unit (gRPC over HTTP/2, "Timeout").
fn caller_timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3_600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeout(text: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-timeout", text.parse().unwrap());
        caller_timeout(&headers)
    }

    #[test]
    fn timeouts_of_the_specification() {
        assert_eq!(timeout("100m"), Some(Duration::from_millis(100)));
        assert_eq!(timeout("99999999H"), Some(Duration::from_secs(99_999_999 * 3_600)));
        assert_eq!(timeout("1S"), Some(Duration::from_secs(1)));
        assert_eq!(timeout("5u"), Some(Duration::from_micros(5)));
    }

    #[test]
    fn other_timeouts_count_for_nothing() {
        for text in ["", "m", "100", "1x", "-1S", "123456789S", "1 S"] {
            assert_eq!(timeout(text), None, "{text}");
        }
    }
}
