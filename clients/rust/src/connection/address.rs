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
    let parse = |text: &str| text.parse::<Uri>().map_err(|_| wrong());
    if server.contains("://") {
        let url = parse(server)?;
        let is_known = matches!(url.scheme_str(), Some("http" | "https"));
        return if is_known && url.host().is_some() { Ok(url) } else { Err(wrong()) };
    }
    let plain = parse(&format!("http://{server}"))?;
    if is_loopback(&plain) { Ok(plain) } else { parse(&format!("https://{server}")) }
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
    fn several_servers_have_one_scheme() {
        let urls = server_urls("https://a:1, b:2").unwrap();
        assert_eq!(urls, ["https://a:1/", "https://b:2/"]);
        let mixed = server_urls("http://a:1,https://b:2").unwrap_err();
        assert!(mixed.to_string().contains("schemes"), "{mixed}");
        assert!(server_urls("http://a:1,").is_err());
    }
}
