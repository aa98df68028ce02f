//! The set-up of logs, metrics and traces. Other modules record them.

mod process;
mod traces;

use std::convert::Infallible;
use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::READ_LOG;
use polynym_directory::MUTATION_LOG;
use process::Process;
pub use traces::export_traces;

/// Starts logging to standard error as text, or with `json`, as one JSON object per line. `filter`
/// is a level such as `info`, or levels of modules such as `polynym=debug,warn`. The HTTP/2 library
/// logs errors of callers only if `filter` names it (`h2=warn`). Reads are logged with `log_reads`,
/// whatever the level. Later calls have no effect.
///
/// # Errors
/// `filter` is invalid.
pub fn init(json: bool, filter: &str, log_reads: bool) -> Result<(), ParseError> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(env_filter(filter, log_reads)?)
        .with_writer(std::io::stderr)
        .with_target(false);
    let started = if json {
        builder.json().flatten_event(true).try_init()
    } else {
        use std::io::IsTerminal;
        builder.with_ansi(std::io::stderr().is_terminal()).try_init()
    };
    // A second start fails and changes nothing.
    drop(started);
    std::panic::set_hook(Box::new(log_panic));

    Ok(())
}

/// The name of a metric, and its meaning.
pub type Metric = (&'static str, &'static str);

/// The upper bounds of the buckets of durations, in seconds.
const SECONDS_BUCKETS: [f64; 17] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 5.0, 10.0,
];
/// The upper bounds of the buckets of counts.
const COUNT_BUCKETS: [f64; 11] =
    [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0];
/// The interval of upkeep.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The gauge of the program's version.
const BUILD: Metric = ("polynym_build_info", "Always 1, with the program's version");

/// The metrics of this process.
#[derive(Clone)]
pub struct Metrics {
    recorded: PrometheusHandle,
    process: Process,
}

impl Metrics {
    /// Starts recording metrics. Sets `counters` to 0, and describes `others`, which have labels or
    /// are gauges or histograms.
    ///
    /// # Errors
    /// This process records metrics already.
    pub fn install(counters: &[Metric], others: &[Metric]) -> Result<Self, String> {
        let message =
            |error: &dyn ToString| format!("cannot record metrics: {}", error.to_string());
        let builder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS_BUCKETS)
            .and_then(|builder| builder.set_buckets(&COUNT_BUCKETS))
            .map_err(|error| message(&error))?;
        let handle = builder.install_recorder().map_err(|error| message(&error))?;
        for (name, help) in others {
            // A description sets the help text, not the kind of the metric.
            describe_gauge!(*name, *help);
            describe_histogram!(*name, *help);
            describe_counter!(*name, *help);
        }
        for (name, help) in counters {
            describe_counter!(*name, *help);
            counter!(*name).increment(0);
        }
        describe_gauge!(BUILD.0, BUILD.1);
        gauge!(BUILD.0, "version" => env!("CARGO_PKG_VERSION")).set(1);
        Ok(Self { recorded: handle, process: Process::new() })
    }

    /// All metrics in the text format of Prometheus.
    pub fn render(&self) -> String {
        self.recorded.render() + &self.process.render()
    }

    /// Runs upkeep in a loop: drains the samples of histograms.
    pub async fn upkeep(&self) -> Infallible {
        loop {
            tokio::time::sleep(UPKEEP_INTERVAL).await;
            self.recorded.run_upkeep();
        }
    }
}

fn env_filter(filter: &str, log_reads: bool) -> Result<EnvFilter, ParseError> {
    let audited = match log_reads {
        // Changes show users, too, and calls have the ids of their traces.
        true => format!("{READ_LOG}=info,{MUTATION_LOG}=info,polynym_transport::calls::trace=info"),
        false => format!("{READ_LOG}=off"),
    };
    EnvFilter::try_new(format!("h2=off,{audited},{filter}"))
}

/// Logs the location of a panic, but not its message, which may contain personal data.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(place, "a panic");
}

#[cfg(test)]
mod tests {
    use super::env_filter;

    #[test]
    fn the_http2_library_and_reads_are_logged_only_if_named() {
        let filter = |text: &str| env_filter(text, false).unwrap().to_string();
        assert!(filter("debug").contains("h2=off"));
        let reads = env_filter("error", true).unwrap().to_string();
        assert!(reads.contains("polynym::reads=info") && filter("info").contains("reads=off"));
        let named = filter("info,h2=warn");
        assert!(named.contains("h2=warn") && !named.contains("h2=off"), "{named}");
    }
}
