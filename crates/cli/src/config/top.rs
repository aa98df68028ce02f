//! The settings of `polynym top`.

use std::time::Duration;

use super::client::{Caller, Output};
use super::parse;
use super::setting::settings;

settings! {
    /// The server to monitor, and the output.
    pub struct Top {
        /// The server's --admin-listen address.
        pub metrics: http::Uri = ("URL", "http://127.0.0.1:9464", url),
        /// Interval between two measurements.
        pub interval: Duration = ("TIME", "1s", parse::positive),
        /// The caller.
        pub caller: Caller,
        /// Print one measurement and exit; the default without a terminal.
        pub once: bool = switch,
        /// The output.
        pub output: Output,
    }
}

fn url(text: &str) -> Result<http::Uri, String> {
    text.parse::<http::Uri>()
        .ok()
        .filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some())
        .ok_or_else(|| format!("{text:?} is not a URL: write one such as http://127.0.0.1:9464"))
}
