//! The settings of a server's log and traces.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::parse;
use super::setting::Setting;
use super::values::Values;

/// The log and the traces.
#[derive(Clone, Debug, PartialEq)]
pub struct Telemetry {
    /// The collector of traces, if they are exported.
    pub otlp: Option<String>,
    /// The share of traces starting at this server that are exported.
    pub otlp_sample: f64,
    /// The calls to log.
    pub log_calls: LogCalls,
    /// The format of the log.
    pub log_format: LogFormat,
    /// The filter of log lines.
    pub log: String,
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

const OTLP: Setting = Setting::new(
    "otlp",
    "URL",
    "",
    "OpenTelemetry collector for a span of each call, such as http://127.0.0.1:4317",
);
const OTLP_SAMPLE: Setting = Setting::new(
    "otlp-sample",
    "SHARE",
    "0.01",
    "Share of traces to export, from 0 to 1; traces of callers follow their sampling",
);
const LOG_CALLS: Setting = Setting::new(
    "log-calls",
    "none|sampled|all",
    "none",
    "Calls to log: none, one in a hundred, or all",
);
const LOG_FORMAT: Setting =
    Setting::new("log-format", "text|json", "text", "Format of the log on standard error");
pub const LOG: Setting = Setting::new(
    "log",
    "FILTER",
    "info",
    "Filter of the log: a level, or levels of modules such as polynym=debug,warn",
);

impl Telemetry {
    /// The settings.
    pub const SETTINGS: [&Setting; 5] = [&OTLP, &OTLP_SAMPLE, &LOG_CALLS, &LOG_FORMAT, &LOG];

    /// Parses the settings.
    pub fn resolve(values: &mut Values<'_>) -> Option<Self> {
        let (otlp, otlp_sample) = (values.get(&OTLP, otlp), values.get(&OTLP_SAMPLE, share));
        let log_calls = values.get(&LOG_CALLS, log_calls);
        let log_format = values.get(&LOG_FORMAT, log_format);
        let log = values.get(&LOG, filter);
        Some(Self {
            otlp: otlp?,
            otlp_sample: otlp_sample?,
            log_calls: log_calls?,
            log_format: log_format?,
            log: log?,
        })
    }
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
        Ok(uri) if uri.scheme_str() == Some("http") && uri.host().is_some() => {
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
