//! The addresses of a server, and the credentials and encryption that it requires.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use super::http::{HTTP_LISTEN, ServerHttp};
use super::parse;
use super::setting::Setting;
use super::values::Values;

/// The addresses of a server, and their protection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAccess {
    /// The addresses of the host to listen on: the first one that works.
    pub listen: Vec<SocketAddr>,
    /// The credentials file, if callers need credentials.
    pub credentials: Option<PathBuf>,
    /// The files of the encryption, if connections are encrypted.
    pub tls: Option<ServerTls>,
    /// Whether a proxy in front ends TLS.
    pub behind_proxy: bool,
    /// The HTTP listener, if there is one.
    pub http: Option<ServerHttp>,
    /// The addresses of the operators' listener, if there is one.
    pub admin_listen: Option<Vec<SocketAddr>>,
    /// The calls per second of a caller without a rate in its credentials; none for no limit.
    pub caller_calls: Option<NonZeroU32>,
    /// The look-ups per second of such a caller that find no user; none for no limit.
    pub caller_misses: Option<NonZeroU32>,
}

/// The files of a server's encryption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// The certificate.
    pub certificate: PathBuf,
    /// The key.
    pub key: PathBuf,
    /// The authorities of clients' certificates, if the server requests them.
    pub client_ca: Option<PathBuf>,
    /// Whether clients need a certificate.
    pub client_required: bool,
}

pub const LISTEN: Setting = Setting::new(
    "listen",
    "HOST:PORT",
    "127.0.0.1:7171",
    "Address to listen on; port 0 for a free port",
);
const ADMIN_LISTEN: Setting = Setting::new(
    "admin-listen",
    "HOST:PORT",
    "",
    "Address for operators: /metrics, /healthz and /readyz; off by default",
);
const METRICS_LISTEN: Setting =
    Setting::new("metrics-listen", "HOST:PORT", "", "Alias of --admin-listen");
const CREDENTIALS: Setting = Setting::new(
    "credentials",
    "FILE",
    "",
    "File of callers and their tokens, reloaded on changes; without it, every caller is an admin",
);
const TLS_CERT: Setting =
    Setting::new("tls-cert", "FILE", "", "The server's certificate chain, as PEM");
const TLS_KEY: Setting =
    Setting::new("tls-key", "FILE", "", "The key of the server's certificate, as PEM");
const TLS_CLIENT_CA: Setting = Setting::new(
    "tls-client-ca",
    "FILE",
    "",
    "Request client certificates from these authorities, as PEM",
);
const TLS_CLIENT_AUTH: Setting = Setting::new(
    "tls-client-auth",
    "optional|required",
    "required",
    "Whether clients need a certificate, with --tls-client-ca",
);
const CALLER_CALLS: Setting = Setting::new(
    "caller-calls",
    "N",
    "0",
    "Calls per second of a caller, unless its credentials have a rate; 0 for no limit",
);
const CALLER_MISSES: Setting = Setting::new(
    "caller-misses",
    "N",
    "1000",
    "Look-ups per second of a resolver that find no user; 0 for no limit",
);
const BEHIND_PROXY: Setting = Setting::switch(
    "behind-proxy",
    "Accept other machines without encryption, since a proxy in front terminates TLS",
);
const INSECURE: Setting =
    Setting::switch("insecure", "Accept other machines without encryption or credentials");

impl ServerAccess {
    /// The settings.
    pub const SETTINGS: [&Setting; 12] = [
        &LISTEN,
        &ADMIN_LISTEN,
        &METRICS_LISTEN,
        &CREDENTIALS,
        &CALLER_CALLS,
        &CALLER_MISSES,
        &TLS_CERT,
        &TLS_KEY,
        &TLS_CLIENT_CA,
        &TLS_CLIENT_AUTH,
        &BEHIND_PROXY,
        &INSECURE,
    ];

    /// Parses the settings. An address that other machines can reach requires encryption and
    /// credentials, unless the settings allow otherwise. A server with made-up users has an HTTP
    /// listener, unless `--listen` is given.
    pub fn resolve(values: &mut Values<'_>, is_sample: bool) -> Option<Self> {
        let listen = values.get(&LISTEN, parse::addresses);
        let has_listener = is_sample && !values.is_given(&LISTEN);
        let http = ServerHttp::resolve(values, is_sample, has_listener);
        let admin_listen = admin_listen(values);
        let credentials = values.get(&CREDENTIALS, parse::path);
        let [caller_calls, caller_misses] =
            [&CALLER_CALLS, &CALLER_MISSES].map(|setting| values.get(setting, parse::rate));
        let tls = tls(values);
        let behind_proxy = values.switch(&BEHIND_PROXY);
        let insecure = values.switch(&INSECURE);
        let access = Self {
            listen: listen?,
            http: http?,
            admin_listen: admin_listen?,
            credentials: credentials?,
            tls: tls?,
            behind_proxy: behind_proxy?,
            caller_calls: caller_calls?,
            caller_misses: caller_misses?,
        };
        let (behind_proxy, insecure) = (access.behind_proxy, insecure?);

        if behind_proxy && access.credentials.is_none() {
            let message = "the proxy's callers need credentials: add --credentials FILE";
            values.reject(&BEHIND_PROXY, message.to_owned());
            return Some(access);
        }
        let api = (&LISTEN, access.listen.as_slice(), behind_proxy);
        let operators = access.admin_listen.as_deref().map(|all| (&ADMIN_LISTEN, all, false));
        let http = access.http.as_ref().map(|http| (&HTTP_LISTEN, &*http.listen, behind_proxy));
        let all = [api].into_iter().chain(http).chain(operators);
        for (setting, addresses, behind_proxy) in all {
            if let Some(message) = access.exposure(addresses, behind_proxy).filter(|_| !insecure) {
                values.reject(setting, message);
            }
        }
        Some(access)
    }

    /// The risk of unprotected addresses that other machines can reach.
    fn exposure(&self, addresses: &[SocketAddr], behind_proxy: bool) -> Option<String> {
        let outside = addresses.iter().find(|one| !one.ip().to_canonical().is_loopback())?;
        let missing = match (self.tls.is_some() || behind_proxy, self.credentials.is_some()) {
            (true, true) => return None,
            (false, true) => "TLS is",
            (true, false) => "credentials are",
            (false, false) => "TLS and credentials are",
        };
        Some(format!(
            "other machines can reach {outside}, and {missing} missing: anybody there could read \
             and change every user. Add {ADVICE}, listen on 127.0.0.1, or accept the risk with \
             --insecure"
        ))
    }
}

const ADVICE: &str = "--tls-cert, --tls-key and --credentials";

/// The addresses for operators, by either name of the setting.
fn admin_listen(values: &mut Values<'_>) -> Option<Option<Vec<SocketAddr>>> {
    let [by_name, by_alias] = [&ADMIN_LISTEN, &METRICS_LISTEN]
        .map(|setting| values.get(setting, parse::optional_addresses));
    match (by_name?, by_alias?) {
        (Some(_), Some(_)) => {
            let message = "an alias of --admin-listen: use one of them".to_owned();
            values.reject(&METRICS_LISTEN, message);
            None
        }
        (by_name, by_alias) => Some(by_name.or(by_alias)),
    }
}

/// The certificate with its key, and the client certificates.
fn tls(values: &mut Values<'_>) -> Option<Option<ServerTls>> {
    let [certificate, key, client_ca] =
        [&TLS_CERT, &TLS_KEY, &TLS_CLIENT_CA].map(|setting| values.get(setting, parse::path));
    let client_required =
        values.get(&TLS_CLIENT_AUTH, parse::choice(&[("optional", false), ("required", true)]));
    let (client_ca, client_required) = (client_ca?, client_required?);
    if client_ca.is_none() && values.is_given(&TLS_CLIENT_AUTH) {
        let message = "no client certificates are requested: add --tls-client-ca";
        values.reject(&TLS_CLIENT_AUTH, message.to_owned());
    }
    match (certificate?, key?) {
        (Some(certificate), Some(key)) => {
            Some(Some(ServerTls { certificate, key, client_ca, client_required }))
        }
        (None, None) if client_ca.is_some() => {
            let message = "client certificates require TLS: add --tls-cert and --tls-key";
            values.reject(&TLS_CLIENT_CA, message.to_owned());
            None
        }
        (None, None) => Some(None),
        (Some(_), None) => {
            values.reject(&TLS_CERT, "the certificate's key is missing: add --tls-key".to_owned());
            None
        }
        (None, Some(_)) => {
            values.reject(&TLS_KEY, "the key's certificate is missing: add --tls-cert".to_owned());
            None
        }
    }
}
