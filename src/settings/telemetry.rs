//! The settings of a server's log and traces.

use polynym_cli::config::{parse, settings};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

settings! {
    /// The log and the traces.
    pub struct Telemetry {
        /// OpenTelemetry collector for spans of calls, such as http://127.0.0.1:4317; the variables
        /// of OpenTelemetry have its headers and others.
        pub otlp: Option<String> = ("URL", "", otlp),
        /// Share of traces to export, from 0 to 1; traces of callers follow their sampling.
        pub otlp_sample: f64 = ("SHARE", "0.01", share),
        /// Calls to log: none, one in a hundred, or all.
        pub log_calls: LogCalls = ("none|sampled|all", "none", log_calls),
        /// Log whose record was read, by which caller: a line for each call that shows users.
        pub log_reads: bool = switch,
        /// Format of the log on standard error.
        pub log_format: LogFormat = ("text|json", "text", log_format),
        /// Filter of the log: a level, or levels of modules such as polynym=debug,warn.
        pub log: String = ("FILTER", "info", filter),
    }
}

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs: one JSON object per line.
    Json,
}

/// The calls to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogCalls {
    /// None.
    None,
    /// One in a hundred.
    Sampled,
    /// All.
    All,
}

fn log_format(text: &str) -> Result<LogFormat, String> {
    parse::choice(&[("text", LogFormat::Text), ("json", LogFormat::Json)])(text)
}

fn log_calls(text: &str) -> Result<LogCalls, String> {
    let (none, sampled) = (("none", LogCalls::None), ("sampled", LogCalls::Sampled));
    parse::choice(&[none, sampled, ("all", LogCalls::All)])(text)
}

fn otlp(text: &str) -> Result<Option<String>, String> {
    match text.parse::<http::Uri>() {
        _ if text.is_empty() => Ok(None),
        Ok(uri) if matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some() => {
            Ok(Some(text.to_owned()))
        }
        _ => Err("write the URL of a collector, such as http://127.0.0.1:4317".to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 1".to_owned())
}

/// Parses a filter. The library accepts a misspelt level as the name of a module: reject that.
fn filter(text: &str) -> Result<String, String> {
    let is_level = |part: &str| part.parse::<LevelFilter>().is_ok();
    let is_valid = text.split(',').all(|part| is_level(part) || part.contains(['=', '[']));
    match EnvFilter::try_new(text) {
        Ok(_) if is_valid => Ok(text.to_owned()),
        _ => Err("write a level (error, warn, info, debug, trace or off), or polynym=debug,warn"
            .to_owned()),
    }
}
