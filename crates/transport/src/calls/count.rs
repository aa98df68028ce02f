//! Counts calls by method, code and caller, and measures their time.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use http::{HeaderMap, Response};
use metrics::{Histogram, Label, counter, histogram};
use opentelemetry::Context;
use tonic::{Code, Status};
use tonic_types::StatusExt;
use tracing::Span;

use super::refusal_log::RefusalLog;
use super::trace::CallTrace;
use crate::method::Row;
use crate::options::LogCalls;
use polynym_access::{Call, MAX_METHODS, Metric};

/// The counter of calls.
pub const CALLS: (&str, &str) = ("polynym_calls_total", "Calls, by method, code and caller");
/// The histogram of the time that calls take.
pub const SECONDS: (&str, &str) = (
    "polynym_call_seconds",
    "Time from a call's headers to its response, by method; for streams until they are open",
);
/// The counter of rejected calls.
pub const REJECTED: (&str, &str) = (
    "polynym_rejected_total",
    "Calls rejected by a limit, a missing right or an outage; the cause is the error's reason",
);
/// The name of unknown callers. It is not a valid name of a caller.
const UNKNOWN_CALLER: &str = "-";

/// One call. It is counted once: as cancelled if its client leaves.
pub struct CallCount {
    method: &'static str,
    index: usize,
    started: Instant,
    call: Option<Arc<Call>>,
    trace: CallTrace,
    log: LogCalls,
    refusal_log: RefusalLog,
    is_open: bool,
}

impl CallCount {
    pub fn begin(
        row: &Row,
        headers: &HeaderMap,
        log: LogCalls,
        address: Option<SocketAddr>,
    ) -> Self {
        let (method, index) = (row.name, row.index);
        let trace = CallTrace::begin(method, headers);
        let refusal_log = RefusalLog { method, is_mutation: row.is_mutation(), address };
        let started = Instant::now();
        Self { method, index, started, call: None, trace, log, refusal_log, is_open: true }
    }

    /// The span in which log lines name the call's trace.
    pub fn log_span(&self) -> Span {
        self.trace.log_span()
    }

    /// The context of the call's trace.
    pub fn trace_context(&self) -> Option<Context> {
        self.trace.context()
    }

    /// Sets the call, once its caller is known.
    pub fn set_call(&mut self, call: Option<Arc<Call>>) {
        self.call = call;
    }

    /// Ends the call with the status of its response.
    pub fn end_with_response<B>(&mut self, response: &Response<B>) {
        match Status::from_header_map(response.headers()) {
            Some(status) => self.end(&status),
            None => self.count(Code::Ok),
        }
    }

    /// Ends the call with this status.
    pub fn end(&mut self, status: &Status) {
        if is_rejection(status.code())
            && let Some(info) = status.get_details_error_info()
        {
            counter!(REJECTED.0, "cause" => info.reason).increment(1);
        }
        let caller = self.call.as_ref().map_or(UNKNOWN_CALLER, |call| &call.name);
        self.log_span().in_scope(|| self.refusal_log.write(status, caller));
        self.count(status.code());
    }

    fn count(&mut self, code: Code) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        latency_histogram(self.index, self.method).record(self.started.elapsed().as_secs_f64());
        let (call, method) = (self.call.as_deref(), self.method);
        let name = call.map_or(UNKNOWN_CALLER, |call| &call.name);
        let register = || {
            let labels = [("method", method), ("code", code_name(code)), ("caller", name)]
                .map(|(label, value)| Label::new(label, value.to_owned()));
            counter!(CALLS.0, labels.to_vec())
        };
        if self.log.should_log() {
            let (code, ms) = (code_name(code), self.started.elapsed().as_secs_f64() * 1e3);
            self.log_span().in_scope(|| tracing::info!(caller = name, method, code, ms, "call"));
        }
        self.trace.end(code, name);
        match call {
            Some(call) => {
                call.state.counters.get(self.index, code as usize, register).increment(1);
                call.count(Metric::Call { method, code: code_name(code) }, 1);
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

/// Whether this code rejects a call rather than answers it.
const fn is_rejection(code: Code) -> bool {
    use Code::{
        DeadlineExceeded, PermissionDenied, ResourceExhausted, Unauthenticated, Unavailable,
    };
    matches!(
        code,
        DeadlineExceeded | PermissionDenied | ResourceExhausted | Unauthenticated | Unavailable
    )
}

/// The latency histogram of a method.
fn latency_histogram(index: usize, method: &'static str) -> &'static Histogram {
    static ALL: [OnceLock<Histogram>; MAX_METHODS] = [const { OnceLock::new() }; MAX_METHODS];
    let register = || histogram!(SECONDS.0, "method" => method);
    ALL[index.min(MAX_METHODS - 1)].get_or_init(register)
}

/// The name of a code in the specification (gRPC, "Status codes").
const fn code_name(code: Code) -> &'static str {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_names_of_the_specification() {
        for code in (0..=16).map(Code::from_i32) {
            let (name, words) = (code_name(code), format!("{code:?}"));
            assert_eq!(name.replace('_', ""), words.to_uppercase());
            let capitals = words.chars().filter(char::is_ascii_uppercase).count();
            assert_eq!(name.split('_').count(), capitals, "{name}");
        }
    }
}
