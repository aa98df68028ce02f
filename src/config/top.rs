//! The settings of `polynym top`.

use std::path::PathBuf;
use std::time::Duration;

use super::client::{CA, CERT, JSON, KEY, TIMEOUT, TOKEN_FILE, certificate};
use super::{Resolve, Setting, Values, parse};

/// Which server's metrics to watch, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Top {
    /// The URL of the server's port for operators.
    pub metrics: http::Uri,
    /// The pause between two looks.
    pub interval: Duration,
    /// The longest to wait for an answer.
    pub timeout: Duration,
    /// The file of an admin's token, if one is needed.
    pub token_file: Option<PathBuf>,
    /// The file of the authorities that the server's certificate may be of, in place of the
    /// system's.
    pub ca: Option<PathBuf>,
    /// The files of an admin's certificate and its key, if one is needed.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Whether to print one measurement and end.
    pub once: bool,
    /// As JSON, for programs.
    pub json: bool,
}

const METRICS: Setting = Setting {
    name: "metrics",
    value: "URL",
    default: "http://127.0.0.1:9464",
    help: "The server's port for operators, its --admin-listen",
};
const INTERVAL: Setting =
    Setting { name: "interval", value: "TIME", default: "1s", help: "The pause between two looks" };
const ONCE: Setting = Setting {
    name: "once",
    value: "",
    default: "false",
    help: "Print one measurement and end, as without a terminal",
};

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
    let uri = text.parse::<http::Uri>().ok();
    let uri = uri
        .filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some());
    uri.ok_or_else(|| format!("{text:?} is no URL: write one such as http://127.0.0.1:9464"))
}
