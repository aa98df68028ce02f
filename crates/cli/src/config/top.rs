//! The settings of `polynym top`.

use std::path::PathBuf;
use std::time::Duration;

use super::client::{CA, CERT, JSON, KEY, TIMEOUT, TOKEN_FILE, certificate};
use super::parse;
use super::setting::Setting;
use super::values::{Resolve, Values};

/// The server to monitor, and the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Top {
    /// The URL of the server's operators' listener.
    pub metrics: http::Uri,
    /// The interval between two scrapes.
    pub interval: Duration,
    /// The maximum time to wait for an answer.
    pub timeout: Duration,
    /// The file of an admin's token, if required.
    pub token_file: Option<PathBuf>,
    /// The file of the server's certificate authorities, instead of the system's.
    pub ca: Option<PathBuf>,
    /// The files of an admin's certificate and its key, if required.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Whether to print one measurement and end.
    pub once: bool,
    /// Whether to print JSON.
    pub json: bool,
}

const METRICS: Setting =
    Setting::new("metrics", "URL", "http://127.0.0.1:9464", "The server's --admin-listen address");
const INTERVAL: Setting =
    Setting::new("interval", "TIME", "1s", "Interval between two measurements");
const ONCE: Setting =
    Setting::switch("once", "Print one measurement and exit; the default without a terminal");

impl Resolve for Top {
    fn settings() -> Vec<&'static Setting> {
        vec![&METRICS, &INTERVAL, &TIMEOUT, &TOKEN_FILE, &CA, &CERT, &KEY, &ONCE, &JSON]
    }

    fn resolve(values: &mut Values<'_>) -> Option<Self> {
        let metrics = values.get(&METRICS, url);
        let interval = values.get(&INTERVAL, parse::positive);
        let timeout = values.get(&TIMEOUT, parse::positive);
        let token_file = values.get(&TOKEN_FILE, parse::path);
        let ca = values.get(&CA, parse::path);
        let certificate = certificate(values);
        let (once, json) = (values.switch(&ONCE), values.switch(&JSON));
        Some(Self {
            metrics: metrics?,
            interval: interval?,
            timeout: timeout?,
            token_file: token_file?,
            ca: ca?,
            certificate: certificate?,
            once: once?,
            json: json?,
        })
    }
}

fn url(text: &str) -> Result<http::Uri, String> {
    text.parse::<http::Uri>()
        .ok()
        .filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some())
        .ok_or_else(|| format!("{text:?} is not a URL: write one such as http://127.0.0.1:9464"))
}
