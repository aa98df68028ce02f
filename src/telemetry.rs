//! Logging and counting: where it goes and how it looks. What is logged or counted stands where it
//! happens.

use std::net::SocketAddr;

use metrics::{counter, describe_counter, describe_gauge, gauge};
use metrics_exporter_prometheus::PrometheusBuilder;
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

/// Serves Prometheus metrics on `address`, on every path, until the runtime stops. `counters` are
/// listed from the start with the value 0; `gauges` are described.
///
/// # Errors
/// Where nobody can listen there, or what is counted goes elsewhere already.
pub fn serve_metrics(
    address: SocketAddr,
    counters: &[Metric],
    gauges: &[Metric],
) -> Result<(), String> {
    let started = PrometheusBuilder::new().with_http_listener(address).install();
    started.map_err(|error| format!("cannot tell metrics on {address}: {error}"))?;
    for (name, what) in gauges {
        describe_gauge!(*name, *what);
    }

    for (name, what) in counters {
        describe_counter!(*name, *what);
        counter!(*name).increment(0);
    }
    gauge!("polynym_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1);
    Ok(())
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
