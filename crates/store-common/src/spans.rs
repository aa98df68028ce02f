//! Spans of the store's operations, in the traces of the calls for which they are done.

use std::time::{Duration, SystemTime};

use opentelemetry::trace::{Span, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue, global};

/// The name of the tracer.
const TRACER: &str = "polynym";

/// Adds a span that took this long until now to the trace of the call that this task answers, if
/// that trace is exported. An `outcome` that is an error is marked as such.
pub fn add(operation: &'static str, took: Duration, outcome: &'static str, is_error: bool) {
    if !Context::map_current(|context| context.span().span_context().is_sampled()) {
        return;
    }
    let (tracer, end) = (global::tracer(TRACER), SystemTime::now());
    let attributes =
        [KeyValue::new("db.operation.name", operation), KeyValue::new("polynym.outcome", outcome)];
    let mut span = tracer
        .span_builder(format!("store {operation}"))
        .with_kind(SpanKind::Internal)
        .with_start_time(end - took)
        .with_attributes(attributes)
        .start(&tracer);
    if is_error {
        span.set_status(Status::error(outcome));
    }
    span.end_with_timestamp(end);
}
