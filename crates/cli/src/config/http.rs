//! The HTTP listener of a server.

use std::net::{Ipv4Addr, SocketAddr};

use http::uri::Authority;

use super::parse;
use super::setting::Setting;
use super::values::Values;

/// The HTTP listener of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHttp {
    /// The addresses of the host to listen on: the first one that works.
    pub listen: Vec<SocketAddr>,
    /// The path in front of all others; empty for none.
    pub prefix: String,
    /// The origins whose pages may call the API.
    pub allowed_origins: Vec<String>,
    /// The hosts of the console beside this machine; none if there is no console.
    pub console: Option<Vec<String>>,
}

pub const HTTP_LISTEN: Setting = Setting::new(
    "http-listen",
    "HOST:PORT",
    "",
    "Address for HTTP and JSON; off by default, except with --sample",
);
const HTTP_PREFIX: Setting = Setting::new(
    "http-prefix",
    "PATH",
    "",
    "Path in front of those of the HTTP listener, as in /polynym",
);
const HTTP_ALLOW_ORIGIN: Setting = Setting::new(
    "http-allow-origin",
    "ORIGIN,…",
    "",
    "Origins of web pages that may call the HTTP listener, as in https://app.example.com",
);

const CONSOLE: Setting = Setting::switch(
    "console",
    "Serve the console, web pages for admins, on the HTTP listener; implied by --sample",
);
const CONSOLE_HOST: Setting = Setting::new(
    "console-host",
    "HOST,…",
    "",
    "Hosts under which browsers open the console, as in users.example.com; this machine always may",
);

/// The port of the HTTP listener of a server with made-up users.
const SAMPLE_PORT: u16 = 7180;

impl ServerHttp {
    /// The settings.
    pub const SETTINGS: [&Setting; 5] =
        [&HTTP_LISTEN, &HTTP_PREFIX, &HTTP_ALLOW_ORIGIN, &CONSOLE, &CONSOLE_HOST];

    /// Parses the settings; none without a listener. With `by_default`, there is a listener even if
    /// its address is not set. A server with made-up users has its console on any listener.
    pub fn resolve(
        values: &mut Values<'_>,
        is_sample: bool,
        by_default: bool,
    ) -> Option<Option<Self>> {
        let listen = values.get(&HTTP_LISTEN, parse::optional_addresses);
        let prefix = values.get(&HTTP_PREFIX, prefix);
        let allowed_origins = values.get(&HTTP_ALLOW_ORIGIN, origins);
        let console = values.switch(&CONSOLE);
        let hosts = values.get(&CONSOLE_HOST, hosts);
        let sample = by_default.then(|| vec![SocketAddr::from((Ipv4Addr::LOCALHOST, SAMPLE_PORT))]);
        let listen = listen?.or(sample);
        let (prefix, allowed_origins) = (prefix?, allowed_origins?);
        let (console, hosts) = (console?, hosts?);
        let Some(listen) = listen else {
            let given = [
                (&HTTP_PREFIX, !prefix.is_empty()),
                (&HTTP_ALLOW_ORIGIN, !allowed_origins.is_empty()),
                (&CONSOLE, console),
                (&CONSOLE_HOST, !hosts.is_empty()),
            ];
            for (setting, is_given) in given {
                if is_given {
                    let message = "there is no HTTP listener: add --http-listen HOST:PORT";
                    values.reject(setting, message.to_owned());
                }
            }
            return Some(None);
        };
        let is_implied = is_sample && !values.is_given(&CONSOLE);
        let console = (console || is_implied).then_some(hosts);
        Some(Some(Self { listen, prefix, allowed_origins, console }))
    }
}

/// A path such as `/polynym`, or nothing.
fn prefix(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/".contains(c);
    let is_path = text.starts_with('/') && !text.ends_with('/') && !text.contains("//");
    match text.is_empty() || (is_path && text.chars().all(is_plain)) {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?} is not a path: write it as in /polynym")),
    }
}

/// Names of hosts with commas between them.
fn hosts(text: &str) -> Result<Vec<String>, String> {
    let hosts = text.split(',').map(str::trim).filter(|host| !host.is_empty());
    hosts
        .map(|host| match host.parse::<Authority>() {
            Ok(authority) if !authority.as_str().contains('@') => Ok(host.to_ascii_lowercase()),
            _ => Err(format!("{host:?} is not a host: write it as in users.example.com")),
        })
        .collect()
}

/// Origins with commas between them.
fn origins(text: &str) -> Result<Vec<String>, String> {
    text.split(',').map(str::trim).filter(|origin| !origin.is_empty()).map(origin).collect()
}

fn origin(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").or(text.strip_prefix("http://"));
    let authority = host.and_then(|host| host.parse::<Authority>().ok());
    match authority.is_some_and(|authority| !authority.as_str().contains('@')) {
        true => Ok(text.to_ascii_lowercase()),
        false => Err(format!(
            "{text:?} is not an origin: write scheme and host, as in https://app.example.com"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_paths_without_a_slash_at_the_end() {
        assert_eq!(prefix("").as_deref(), Ok(""));
        assert_eq!(prefix("/a/b-c").as_deref(), Ok("/a/b-c"));
        for wrong in ["/", "a", "/a/", "/a//b", "/a?b", "/é", "http://a"] {
            assert!(prefix(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn origins_have_a_scheme_and_a_host_and_no_path() {
        let parsed = origins("https://App.example.com, http://localhost:3000").unwrap();
        assert_eq!(parsed, ["https://app.example.com", "http://localhost:3000"]);
        assert_eq!(origins(""), Ok(Vec::new()));
        for wrong in ["*", "null", "app.example.com", "https://a/", "https://", "https://u@a"] {
            assert!(origins(wrong).is_err(), "{wrong}");
        }
    }
}
