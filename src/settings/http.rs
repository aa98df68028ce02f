//! The HTTP listener of a server.

use std::net::SocketAddr;

use http::uri::Authority;
use polynym_cli::config::{Values, parse, settings};

settings! {
    /// The HTTP listener of a server, if there is an address for it.
    pub struct ServerHttp {
        /// Address for HTTP and JSON; off by default, except with --sample.
        pub http_listen: Option<Vec<SocketAddr>> = ("HOST:PORT", "", parse::optional_addresses),
        /// Path in front of those of the HTTP listener, as in /polynym.
        pub http_prefix: String = ("PATH", "", prefix),
        /// Origins of web pages that may call the HTTP listener, as in https://app.example.com.
        pub http_allow_origin: Vec<String> = ("ORIGIN,…", "", origins),
        /// Serve the console, web pages for admins, on the HTTP listener; implied by --sample.
        pub console: bool = switch,
        /// Hosts under which browsers open the console, as in users.example.com; this machine
        /// always may.
        pub console_host: Vec<String> = ("HOST,…", "", hosts),
    }
    check = check;
}

/// Without a listener, there is nothing to configure, and no console.
fn check(http: &mut ServerHttp, values: &mut Values<'_>) {
    if http.http_listen.is_some() {
        return;
    }
    let given = [
        (ServerHttp::http_prefix(), !http.http_prefix.is_empty()),
        (ServerHttp::http_allow_origin(), !http.http_allow_origin.is_empty()),
        (ServerHttp::console(), http.console && values.is_given(ServerHttp::console())),
        (ServerHttp::console_host(), !http.console_host.is_empty()),
    ];
    for (setting, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
        values.reject(setting, "there is no HTTP listener: add --http-listen HOST:PORT");
    }
    http.console = false;
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
