//! Traces of calls (W3C Trace Context): their ids in log lines, and a span of each call for a
//! collector, if one is configured.

use std::sync::OnceLock;

use http::HeaderMap;
use opentelemetry::context::FutureExt as _;
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags,
    TraceId, TraceState,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::SdkTracer;
use tonic::Code;

static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// Sends the spans of all calls from now on to `tracer`. Only the first tracer is used.
pub fn export_to(tracer: SdkTracer) {
    let _ = TRACER.set(tracer);
}

/// The trace of a call.
pub struct CallTrace {
    id: Option<TraceId>,
    /// The context with the span for the collector.
    context: Option<Context>,
}

impl CallTrace {
    /// Continues the trace of the headers. Starts one if they have none and spans are exported.
    pub fn begin(method: &'static str, headers: &HeaderMap) -> Self {
        let parent = headers.get("traceparent").and_then(|value| parse(value.to_str().ok()?));
        let Some(tracer) = TRACER.get() else {
            return Self { id: parent.map(|parent| parent.trace_id()), context: None };
        };
        let context = match parent {
            Some(parent) => Context::new().with_remote_span_context(parent),
            None => Context::new(),
        };
        let attributes = [KeyValue::new("rpc.system", "grpc"), KeyValue::new("rpc.method", method)];
        let span = SpanBuilder::from_name(method)
            .with_kind(SpanKind::Server)
            .with_attributes(attributes)
            .start_with_context(tracer, &context);
        let id = span.span_context().trace_id();
        Self { id: Some(id), context: Some(Context::new().with_span(span)) }
    }

    /// The context in which spans of other parts of the program are parts of the call; none if its
    /// trace is not exported.
    pub fn context(&self) -> Option<Context> {
        self.context.clone().filter(|context| context.span().span_context().is_sampled())
    }

    /// The span that adds the trace id to log lines.
    pub fn log_span(&self) -> tracing::Span {
        match self.id {
            Some(id) => tracing::info_span!("call", trace_id = %id),
            None => tracing::Span::none(),
        }
    }

    /// Ends the span with the outcome.
    pub fn end(&mut self, code: Code, caller: &str) {
        let Some(context) = self.context.take() else { return };
        let span = context.span();
        span.set_attribute(KeyValue::new("rpc.grpc.status_code", code as i64));
        span.set_attribute(KeyValue::new("polynym.caller", caller.to_owned()));
        if matches!(code, Code::Internal | Code::Unknown | Code::Unavailable | Code::DataLoss) {
            span.set_status(Status::error(format!("{code:?}")));
        }
        span.end();
    }
}

/// Does work in the context of a call, if it has one: to change the context costs time.
pub async fn in_context<F: Future>(context: Option<Context>, work: F) -> F::Output {
    match context {
        Some(context) => work.with_context(context).await,
        None => work.await,
    }
}

/// Reads a `traceparent` (section 3.2.2).
fn parse(text: &str) -> Option<SpanContext> {
    let mut parts = text.split('-');
    let (version, trace) = (parts.next()?, parts.next()?);
    let (span, flags, more) = (parts.next()?, parts.next()?, parts.next());
    let is_hex = |text: &str, length| {
        text.len() == length
            && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let is_version = is_hex(version, 2) && version != "ff" && (version != "00" || more.is_none());
    if !is_version || !is_hex(trace, 32) || !is_hex(span, 16) || !is_hex(flags, 2) {
        return None;
    }
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    let context = SpanContext::new(trace, span, flags, true, TraceState::NONE);
    context.is_valid().then_some(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn valid_parents_are_parsed() {
        let context = parse(GOOD).unwrap();
        assert_eq!(context.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert!(context.is_sampled() && context.is_remote());
        assert!(!parse(&GOOD.replace("-01", "-00")).unwrap().is_sampled());
        assert!(parse(&format!("{}-later", GOOD.replacen("00", "cc", 1))).is_some());
    }

    #[test]
    fn other_parents_are_ignored() {
        for wrong in [
            "",
            "00",
            &GOOD[1..],
            &GOOD[..GOOD.len() - 1],
            &format!("{GOOD}-x"),
            &GOOD.replacen("00", "ff", 1),
            &GOOD.to_uppercase(),
            &GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &GOOD.replace("b7ad6b7169203331", &"0".repeat(16)),
        ] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }
}
