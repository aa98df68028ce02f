//! The addresses of servers.

use std::net::IpAddr;

use http::Uri;

use super::ConnectError;

/// The URLs of servers: one, or several that are separated by commas and have the same scheme.
pub fn server_urls(servers: &str) -> Result<Vec<Uri>, ConnectError> {
    let urls: Vec<Uri> =
        servers.split(',').map(|server| server_url(server.trim())).collect::<Result<_, _>>()?;
    if urls.iter().any(|url| url.scheme() != urls[0].scheme()) {
        let message = "the servers have different schemes: write http:// or https:// for all";
        return Err(ConnectError::Setting(message.to_owned()));
    }
    Ok(urls)
}

/// The URL of a server: `host:port` without a scheme is plain text on loopback, else TLS.
fn server_url(server: &str) -> Result<Uri, ConnectError> {
    let wrong = || {
        ConnectError::Setting(format!(
            "{server:?} is not a server: write a URL such as https://users.example.com:7171"
        ))
    };
    if server.contains('@') {
        let message = "the server must not have user information: pass a token with token()";
        return Err(ConnectError::Setting(message.to_owned()));
    }
    check_port(server)?;
    let parse = |text: &str| text.parse::<Uri>().map_err(|_| wrong());
    if server.contains("://") {
        let url = parse(server)?;
        let is_known = matches!(url.scheme_str(), Some("http" | "https"));
        return if is_known && url.host().is_some() { Ok(url) } else { Err(wrong()) };
    }
    let plain = parse(&format!("http://{server}"))?;
    if is_loopback(&plain) { Ok(plain) } else { parse(&format!("https://{server}")) }
}

/// Checks the port of a server, if it has one.
fn check_port(server: &str) -> Result<(), ConnectError> {
    let after_scheme = server.split_once("://").map_or(server, |(_, rest)| rest);
    let authority = after_scheme.split_once('/').map_or(after_scheme, |(authority, _)| authority);
    let after_host = authority.rsplit_once(']').map_or(authority, |(_, rest)| rest);
    let Some((_, port)) = after_host.split_once(':') else { return Ok(()) };
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse::<u16>() {
        Ok(number) if is_number && number > 0 => Ok(()),
        _ => Err(ConnectError::Setting(format!(
            "the port of a server must be a number from 1 to 65535, not {port:?}"
        ))),
    }
}

/// Whether the host is this machine.
pub fn is_loopback(url: &Uri) -> bool {
    let host = host(url);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The host, without the brackets of an address of IPv6.
pub fn host(url: &Uri) -> &str {
    url.host().unwrap_or_default().trim_matches(['[', ']'])
}

/// The port; that of the scheme if the URL names none.
pub fn port(url: &Uri) -> u16 {
    let default = if url.scheme_str() == Some("https") { 443 } else { 80 };
    url.port_u16().unwrap_or(default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_scheme_is_plain_text_on_loopback_alone() {
        for (server, url) in [
            ("127.0.0.1:7171", "http://127.0.0.1:7171/"),
            ("localhost:7171", "http://localhost:7171/"),
            ("[::1]:7171", "http://[::1]:7171/"),
            ("users:7171", "https://users:7171/"),
            ("http://users:7171", "http://users:7171/"),
            ("https://127.0.0.1:7171", "https://127.0.0.1:7171/"),
        ] {
            assert_eq!(server_url(server).unwrap().to_string(), url);
        }
        for wrong in ["", "ftp://users", "a b", "https://"] {
            assert!(server_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ports_are_numbers_from_1_to_65535() {
        for (server, port) in [
            ("127.0.0.1:port", "port"),
            (":99999", "99999"),
            ("http://users:65536", "65536"),
            ("[::1]:0", "0"),
            ("users:-1", "-1"),
            ("users:+1", "+1"),
            ("https://users:/", ""),
        ] {
            let error = server_url(server).unwrap_err().to_string();
            let wanted = "the port of a server must be a number from 1 to 65535";
            assert_eq!(error, format!("{wanted}, not {port:?}"));
        }
    }

    #[test]
    fn user_information_is_refused() {
        for server in ["http://joe:secret@users", "joe:secret@users:x"] {
            let error = server_url(server).unwrap_err().to_string();
            assert!(error.contains("user information") && !error.contains("joe"), "{error}");
        }
    }

    #[test]
    fn several_servers_have_one_scheme() {
        let urls = server_urls("https://a:1, b:2").unwrap();
        assert_eq!(urls, ["https://a:1/", "https://b:2/"]);
        let mixed = server_urls("http://a:1,https://b:2").unwrap_err();
        assert!(mixed.to_string().contains("schemes"), "{mixed}");
        assert!(server_urls("http://a:1,").is_err());
    }
}
