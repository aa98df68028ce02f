//! Logging and counting: where it goes and how it looks. What is logged or counted stands where it
//! happens.

use std::convert::Infallible;
use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// Starts logging to standard error: for people, or (`json`) one JSON object a line. `filter` is a
/// level such as `info`, or levels for parts of the program such as `polynym=debug,warn`. What
/// callers do to their connections is told by the HTTP/2 library, and only where `filter` names it
/// (`h2=warn`). Only the first call counts.
///
/// # Errors
/// Where `filter` is not one.
pub fn init(json: bool, filter: &str) -> Result<(), ParseError> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(but_for_h2(filter)?)
        .with_writer(std::io::stderr)
        .with_target(false);
    let started = if json {
        builder.json().flatten_event(true).try_init()
    } else {
        use std::io::IsTerminal;
        builder.with_ansi(std::io::stderr().is_terminal()).try_init()
    };
    // A second start is refused and changes nothing.
    drop(started);
    std::panic::set_hook(Box::new(log_panic));

    Ok(())
}

/// The name of a metric, and its meaning.
pub type Metric = (&'static str, &'static str);

/// The upper bounds of the buckets of times, in seconds.
const SECONDS: [f64; 17] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 5.0, 10.0,
];
/// The upper bounds of the buckets of counts.
const COUNTS: [f64; 11] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0];
/// The pause between two rounds of tidying up.
const UPKEEP: Duration = Duration::from_secs(5);

/// The gauge of the program.
const BUILD: Metric = ("polynym_build_info", "Always 1, with the program's version");

/// The metrics of this process.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Starts to count. `counters` are listed from the start with the value 0; `others`, which have
    /// labels or are no counters, are described.
    ///
    /// # Errors
    /// This process counts already.
    pub fn install(counters: &[Metric], others: &[Metric]) -> Result<Self, String> {
        let fault = |error: &dyn ToString| format!("cannot count: {}", error.to_string());
        let builder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
            .and_then(|builder| builder.set_buckets(&COUNTS))
            .map_err(|error| fault(&error))?;
        let handle = builder.install_recorder().map_err(|error| fault(&error))?;
        for (name, what) in others {
            // The kind in the answer is that of the metric itself; any description gives the help.
            describe_gauge!(*name, *what);
            describe_histogram!(*name, *what);
            describe_counter!(*name, *what);
        }
        for (name, what) in counters {
            describe_counter!(*name, *what);
            counter!(*name).increment(0);
        }
        describe_gauge!(BUILD.0, BUILD.1);
        gauge!(BUILD.0, "version" => env!("CARGO_PKG_VERSION")).set(1);
        Ok(Self(handle))
    }

    /// All metrics in the text format of Prometheus.
    pub fn render(&self) -> String {
        self.0.render()
    }

    /// Tidies up in a loop: what histograms have been given is summed up.
    pub async fn upkeep(&self) -> Infallible {
        loop {
            tokio::time::sleep(UPKEEP).await;
            self.0.run_upkeep();
        }
    }
}

/// The export of traces to an OpenTelemetry collector by OTLP over gRPC: of those that begin here
/// `share`, of others those that their callers sample. Needs the runtime, now and until it is shut
/// down.
///
/// # Errors
/// The endpoint is no URL.
pub fn export_traces(endpoint: &str, share: f64) -> Result<SdkTracerProvider, String> {
    let exporter = SpanExporter::builder().with_tonic().with_endpoint(endpoint).build();
    let exporter = exporter.map_err(|error| format!("cannot export traces: {error}"))?;
    let sampler = Sampler::parent_based(Sampler::TraceIdRatioBased(share));
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(sampler)
        .with_resource(Resource::builder_empty().with_service_name("polynym").build())
        .build())
}

fn but_for_h2(filter: &str) -> Result<EnvFilter, ParseError> {
    EnvFilter::try_new(format!("h2=off,{filter}"))
}

/// Logs the place of a panic, and not its message, which may hold personal data.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(place, "a panic");
}

#[cfg(test)]
mod tests {
    use super::but_for_h2;

    #[test]
    fn the_http2_library_is_heard_only_where_it_is_named() {
        let filter = |text: &str| but_for_h2(text).unwrap().to_string();
        assert!(filter("debug").contains("h2=off"));
        let named = filter("info,h2=warn");
        assert!(named.contains("h2=warn") && !named.contains("off"), "{named}");
    }
}
