//! The addresses of a server, and the credentials and encryption that it requires.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use polynym_cli::config::{Values, parse, settings};

use super::http::ServerHttp;

settings! {
    /// The addresses of a server, and their protection.
    pub struct ServerAccess {
        /// Address to listen on; port 0 for a free port.
        pub listen: Vec<SocketAddr> = ("HOST:PORT", "127.0.0.1:7171", parse::addresses),
        /// Address for operators: /metrics, /healthz and /readyz; off by default.
        pub admin_listen: Option<Vec<SocketAddr>> = ("HOST:PORT", "", parse::optional_addresses),
        /// Alias of --admin-listen.
        pub metrics_listen: Option<Vec<SocketAddr>> = ("HOST:PORT", "", parse::optional_addresses),
        /// File of callers and their tokens, reloaded on changes; without it, every caller is an
        /// admin.
        pub credentials: Option<PathBuf> = ("FILE", "", parse::path),
        /// Calls per second of a caller, unless its credentials have a rate; 0 for no limit.
        pub caller_calls: Option<NonZeroU32> = ("N", "0", parse::rate),
        /// Look-ups per second of a resolver that find no user; 0 for no limit.
        pub caller_misses: Option<NonZeroU32> = ("N", "1000", parse::rate),
        /// The encryption.
        pub tls: ServerTls,
        /// Accept other machines without encryption, since a proxy in front terminates TLS.
        pub behind_proxy: bool = switch,
        /// Accept other machines without encryption or credentials.
        pub insecure: bool = switch,
        /// The HTTP listener.
        pub http: ServerHttp,
    }
    check = check_access;
}

settings! {
    /// The encryption of a server's connections, if there is a certificate.
    pub struct ServerTls {
        /// The server's certificate chain, as PEM.
        pub tls_cert: Option<PathBuf> = ("FILE", "", parse::path),
        /// The key of the server's certificate, as PEM.
        pub tls_key: Option<PathBuf> = ("FILE", "", parse::path),
        /// Request client certificates from these authorities, as PEM.
        pub tls_client_ca: Option<PathBuf> = ("FILE", "", parse::path),
        /// Whether clients need a certificate, with --tls-client-ca.
        pub tls_client_auth: ClientAuth = ("optional|required", "required", client_auth),
    }
    check = check_tls;
}

/// Whether clients need a certificate, if the server requests them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// A client may have a token instead.
    Optional,
    /// A client without a certificate gets no connection.
    Required,
}

fn client_auth(text: &str) -> Result<ClientAuth, String> {
    let choices = [("optional", ClientAuth::Optional), ("required", ClientAuth::Required)];
    parse::choice(&choices)(text)
}

impl ServerTls {
    /// Whether connections are encrypted.
    pub fn is_on(&self) -> bool {
        self.tls_cert.is_some()
    }
}

fn check_tls(tls: &mut ServerTls, values: &mut Values<'_>) {
    if tls.tls_client_ca.is_none() && values.is_given(ServerTls::tls_client_auth()) {
        let message = "no client certificates are requested: add --tls-client-ca";
        values.reject(ServerTls::tls_client_auth(), message);
    }
    values
        .reject_half((ServerTls::tls_cert(), &tls.tls_cert), (ServerTls::tls_key(), &tls.tls_key));
    if tls.tls_cert.is_none() && tls.tls_key.is_none() && tls.tls_client_ca.is_some() {
        let message = "client certificates require TLS: add --tls-cert and --tls-key";
        values.reject(ServerTls::tls_client_ca(), message);
    }
}

/// An address that other machines can reach requires encryption and credentials, unless the
/// settings allow otherwise.
fn check_access(access: &mut ServerAccess, values: &mut Values<'_>) {
    if access.admin_listen.is_some() && access.metrics_listen.is_some() {
        values
            .reject(ServerAccess::metrics_listen(), "an alias of --admin-listen: use one of them");
    }
    access.admin_listen = access.admin_listen.take().or(access.metrics_listen.take());
    if access.behind_proxy && access.credentials.is_none() {
        let message = "the proxy's callers need credentials: add --credentials FILE";
        values.reject(ServerAccess::behind_proxy(), message);
        return;
    }
    let behind_proxy = access.behind_proxy;
    let all = [
        (ServerAccess::listen(), Some(&access.listen), behind_proxy),
        (ServerHttp::http_listen(), access.http.http_listen.as_ref(), behind_proxy),
        (ServerAccess::admin_listen(), access.admin_listen.as_ref(), false),
    ];
    for (setting, addresses, behind_proxy) in all {
        let exposure = addresses.and_then(|all| access.exposure(all, behind_proxy));
        if let Some(message) = exposure.filter(|_| !access.insecure) {
            values.reject(setting, message);
        }
    }
}

impl ServerAccess {
    /// The risk of unprotected addresses that other machines can reach.
    fn exposure(&self, addresses: &[SocketAddr], behind_proxy: bool) -> Option<String> {
        let outside = addresses.iter().find(|one| !one.ip().to_canonical().is_loopback())?;
        let missing = match (self.tls.is_on() || behind_proxy, self.credentials.is_some()) {
            (true, true) => return None,
            (false, true) => "TLS is",
            (true, false) => "credentials are",
            (false, false) => "TLS and credentials are",
        };
        Some(format!(
            "other machines can reach {outside}, and {missing} missing: anybody there could read \
             and change every user. Add --tls-cert, --tls-key and --credentials, listen on \
             127.0.0.1, or accept the risk with --insecure"
        ))
    }
}
