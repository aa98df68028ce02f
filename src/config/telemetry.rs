//! The settings of a server's log and traces.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::serve::setting;
use super::{Setting, Values, parse};

/// The log and the traces.
#[derive(Clone, Debug, PartialEq)]
pub struct Telemetry {
    /// The collector of traces, if they are exported.
    pub otlp: Option<String>,
    /// The share of traces that begin here and are exported.
    pub otlp_sample: f64,
    /// The calls that have a line in the log.
    pub log_calls: LogCalls,
    /// The form of the log.
    pub log_format: LogFormat,
    /// The filter of log lines.
    pub log: String,
}

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs: one JSON object a line.
    Json,
}

/// The calls that have a line in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogCalls {
    /// None.
    None,
    /// One in a hundred.
    Sampled,
    /// All.
    All,
}

const OTLP: Setting = setting(
    "otlp",
    "URL",
    "",
    "The OpenTelemetry collector that gets a span of each call, such as http://127.0.0.1:4317",
);
const OTLP_SAMPLE: Setting = setting(
    "otlp-sample",
    "SHARE",
    "0.01",
    "The share, from 0 to 1, of traces to export that begin here; callers decide on theirs",
);
const LOG_CALLS: Setting = setting(
    "log-calls",
    "none|sampled|all",
    "none",
    "Whether calls have lines in the log: none, one in a hundred, or all",
);
const LOG_FORMAT: Setting =
    setting("log-format", "text|json", "text", "The form of the log, on standard error");
const LOG: Setting =
    setting("log", "FILTER", "info", "What is logged: a level, or polynym=debug,warn and the like");

impl Telemetry {
    /// The settings.
    pub const SETTINGS: [&Setting; 5] = [&OTLP, &OTLP_SAMPLE, &LOG_CALLS, &LOG_FORMAT, &LOG];

    /// Reads and checks them.
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
        _ => Err("write the URL of a collector on this machine or network, such as \
            http://127.0.0.1:4317"
            .to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 1".to_owned())
}

/// A single word that is no level would pass as the name of a part of the program that does not
/// exist.
fn filter(text: &str) -> Result<String, String> {
    let is_level = |part: &str| part.parse::<LevelFilter>().is_ok();
    let sound = text.split(',').all(|part| is_level(part) || part.contains(['=', '[']));
    match EnvFilter::try_new(text) {
        Ok(_) if sound => Ok(text.to_owned()),
        _ => Err(
            "write a level, which is error, warn, info, debug, trace or off, or polynym=debug,warn"
                .to_owned(),
        ),
    }
}
