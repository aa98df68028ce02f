//! The count of calls, by method, code and caller, and the time that they take.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use http::{HeaderMap, Response};
use metrics::{Histogram, Label, counter, histogram};
use tonic::{Code, Status};
use tonic_types::StatusExt;
use tracing::Span;

use super::routes::Target;
use super::trace::{CallTrace, milliseconds};
use crate::access::{Call, Metric};

/// The counter of calls.
pub const CALLS: (&str, &str) = ("polynym_calls_total", "Calls, by method, code and caller");
/// The histogram of the time that calls take.
pub const SECONDS: (&str, &str) = (
    "polynym_call_seconds",
    "Time from a call's headers to its answer, by method; streams until they are open",
);
/// The counter of calls that were turned away.
pub const REJECTED: (&str, &str) = (
    "polynym_rejected_total",
    "Calls turned away by a bound, a right or an outage; the cause is the error's reason",
);
/// The name of callers that are not known. No caller's name can be that.
const UNKNOWN: &str = "-";

/// Of how many calls one has a line in the log, where a sample has.
const SAMPLE: u64 = 100;

/// The calls that have a line in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogCalls {
    /// None.
    #[default]
    None,
    /// One in a hundred.
    Sampled,
    /// All.
    All,
}

impl LogCalls {
    fn is_due(self) -> bool {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        match self {
            Self::None => false,
            Self::Sampled => COUNT.fetch_add(1, Ordering::Relaxed).is_multiple_of(SAMPLE),
            Self::All => true,
        }
    }
}

/// One call, which is counted once: as cancelled where its client leaves.
pub struct CallCount {
    method: &'static str,
    index: usize,
    begun: Instant,
    call: Option<Arc<Call>>,
    trace: CallTrace,
    log: LogCalls,
    is_due: bool,
}

impl CallCount {
    pub fn begin(target: impl Target, headers: &HeaderMap, log: LogCalls) -> Self {
        let (method, index) = (target.name(), target.index());
        let trace = CallTrace::begin(method, headers);
        Self { method, index, begun: Instant::now(), call: None, trace, log, is_due: true }
    }

    /// The span in which log lines name the call's trace.
    pub fn log_span(&self) -> Span {
        self.trace.log_span()
    }

    /// The call is this one of a caller.
    pub fn call(&mut self, call: Option<Arc<Call>>) {
        self.call = call;
    }

    /// The call was answered.
    pub fn answered<B>(&mut self, response: &Response<B>) {
        match Status::from_header_map(response.headers()) {
            Some(status) => self.end(&status),
            None => self.count(Code::Ok),
        }
    }

    /// The call has ended with this status.
    pub fn end(&mut self, status: &Status) {
        if is_rejection(status.code())
            && let Some(info) = status.get_details_error_info()
        {
            counter!(REJECTED.0, "cause" => info.reason).increment(1);
        }
        self.count(status.code());
    }

    fn count(&mut self, code: Code) {
        if !std::mem::take(&mut self.is_due) {
            return;
        }
        seconds(self.index, self.method).record(self.begun.elapsed().as_secs_f64());
        let (call, method) = (self.call.as_deref(), self.method);
        let name = call.map_or(UNKNOWN, |call| &call.name);
        let register = || {
            let labels = [("method", method), ("code", name_of(code)), ("caller", name)];
            let labels = labels.map(|(label, value)| Label::new(label, value.to_owned()));
            counter!(CALLS.0, labels.to_vec())
        };
        if self.log.is_due() {
            let (code, ms) = (name_of(code), milliseconds(self.begun));
            self.log_span().in_scope(|| tracing::info!(caller = name, method, code, ms, "call"));
        }
        self.trace.end(code, name);
        match call {
            Some(call) => {
                call.usage.counters.get(self.index, code as usize, register).increment(1);
                call.count(Metric::Call { method, code: name_of(code) }, 1);
            }
            None => register().increment(1),
        }
    }
}

impl Drop for CallCount {
    fn drop(&mut self) {
        self.count(Code::Cancelled);
    }
}

/// Whether a call with this code was turned away, rather than answered.
const fn is_rejection(code: Code) -> bool {
    use Code::{
        DeadlineExceeded, PermissionDenied, ResourceExhausted, Unauthenticated, Unavailable,
    };
    matches!(
        code,
        DeadlineExceeded | PermissionDenied | ResourceExhausted | Unauthenticated | Unavailable
    )
}

/// The histogram of a method.
fn seconds(index: usize, method: &'static str) -> &'static Histogram {
    static ALL: [OnceLock<Histogram>; METHODS] = [const { OnceLock::new() }; METHODS];
    let register = || histogram!(SECONDS.0, "method" => method);
    ALL[index.min(METHODS - 1)].get_or_init(register)
}

/// The most methods that are counted apart.
const METHODS: usize = 64;

/// The name of a code as the specification has it (gRPC, "Status codes").
const fn name_of(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
