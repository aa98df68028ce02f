//! The address of a server, and the credentials and encryption that it asks for.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use super::{Setting, Values, parse};

/// The address of a server, and its protection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAccess {
    /// The addresses to listen on: those of the host name, tried in order.
    pub listen: Vec<SocketAddr>,
    /// The credentials file, if callers need credentials.
    pub credentials: Option<PathBuf>,
    /// The files of the encryption, if connections are encrypted.
    pub tls: Option<ServerTls>,
    /// The addresses of the operators' listener, if there is one.
    pub admin_listen: Option<Vec<SocketAddr>>,
    /// The calls a second of a caller whose credentials name no rate; none is no bound.
    pub caller_calls: Option<NonZeroU32>,
    /// The look-ups a second that find nobody, likewise.
    pub caller_misses: Option<NonZeroU32>,
}

/// The files of a server's encryption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authorities of clients' certificates, if these are asked for.
    pub client_ca: Option<PathBuf>,
    /// Whether clients need a certificate.
    pub client_required: bool,
}

const LISTEN: Setting = Setting {
    name: "listen",
    value: "HOST:PORT",
    default: "127.0.0.1:7171",
    help: "Where to listen; port 0 takes a free one",
};
const ADMIN_LISTEN: Setting = Setting {
    name: "admin-listen",
    value: "HOST:PORT",
    default: "",
    help: "Where operators find /metrics, /healthz and /readyz; nowhere unless given",
};
const METRICS_LISTEN: Setting = Setting {
    name: "metrics-listen",
    value: "HOST:PORT",
    default: "",
    help: "Another name of --admin-listen",
};
const CREDENTIALS: Setting = Setting {
    name: "credentials",
    value: "FILE",
    default: "",
    help: "Callers and their tokens; read again when it changes. Without it everybody is an admin",
};
const TLS_CERT: Setting = Setting {
    name: "tls-cert",
    value: "FILE",
    default: "",
    help: "The server's certificate and those up to its authority, as PEM",
};
const TLS_KEY: Setting = Setting {
    name: "tls-key",
    value: "FILE",
    default: "",
    help: "The key of the server's certificate, as PEM",
};
const TLS_CLIENT_CA: Setting = Setting {
    name: "tls-client-ca",
    value: "FILE",
    default: "",
    help: "The authorities of clients' certificates, as PEM; clients are asked for one",
};
const TLS_CLIENT_AUTH: Setting = Setting {
    name: "tls-client-auth",
    value: "optional|required",
    default: "required",
    help: "Whether a client without a certificate may connect, once --tls-client-ca is given",
};
const CALLER_CALLS: Setting = Setting {
    name: "caller-calls",
    value: "N",
    default: "0",
    help: "Calls a second of one caller, unless its credentials say otherwise; 0 for any number",
};
const CALLER_MISSES: Setting = Setting {
    name: "caller-misses",
    value: "N",
    default: "1000",
    help: "Look-ups a second of one resolver that find nobody; 0 for any number",
};
const BEHIND_PROXY: Setting = Setting {
    name: "behind-proxy",
    value: "",
    default: "false",
    help: "Let other machines in without encryption, since a proxy in front has ended it",
};
const INSECURE: Setting = Setting {
    name: "insecure",
    value: "",
    default: "false",
    help: "Let other machines in without encryption or without credentials",
};

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

    /// Reads and checks them. An address that other machines can reach needs encryption and
    /// credentials, unless the settings say otherwise.
    pub fn resolve(values: &mut Values<'_>) -> Option<Self> {
        let listen = values.get(&LISTEN, parse::addresses);
        let admin_listen = admin_listen(values);
        let credentials = values.get(&CREDENTIALS, parse::path);
        let [caller_calls, caller_misses] =
            [&CALLER_CALLS, &CALLER_MISSES].map(|setting| values.get(setting, parse::rate));
        let tls = tls(values);
        let behind_proxy = values.switch(&BEHIND_PROXY);
        let insecure = values.switch(&INSECURE);
        let access = Self {
            listen: listen?,
            admin_listen: admin_listen?,
            credentials: credentials?,
            tls: tls?,
            caller_calls: caller_calls?,
            caller_misses: caller_misses?,
        };
        let (behind_proxy, insecure) = (behind_proxy?, insecure?);

        if behind_proxy && access.credentials.is_none() {
            let message = "the proxy's callers need credentials: add --credentials FILE";
            values.refuse(&BEHIND_PROXY, message.to_owned());
            return Some(access);
        }
        let places = [(&LISTEN, access.listen.as_slice(), behind_proxy)];
        let operators = access.admin_listen.as_deref().map(|all| (&ADMIN_LISTEN, all, false));
        for (setting, addresses, behind_proxy) in places.into_iter().chain(operators) {
            if let Some(message) = access.exposure(addresses, behind_proxy).filter(|_| !insecure) {
                values.refuse(setting, message);
            }
        }
        Some(access)
    }

    /// The risk of addresses that other machines can reach, where they lack a protection.
    fn exposure(&self, addresses: &[SocketAddr], behind_proxy: bool) -> Option<String> {
        let outside = addresses.iter().find(|one| !one.ip().to_canonical().is_loopback())?;
        let missing = match (self.tls.is_some() || behind_proxy, self.credentials.is_some()) {
            (true, true) => return None,
            (false, true) => "TLS is",
            (true, false) => "credentials are",
            (false, false) => "TLS and credentials are",
        };
        Some(format!(
            "other machines can reach {outside}, and {missing} missing: without it anybody there \
             could read and change every user. Give {ADVICE}, listen on 127.0.0.1, or take the \
             risk with --insecure"
        ))
    }
}

const ADVICE: &str = "--tls-cert, --tls-key and --credentials";

/// The addresses for operators, by either name of the setting.
fn admin_listen(values: &mut Values<'_>) -> Option<Option<Vec<SocketAddr>>> {
    let [by_name, by_alias] =
        [&ADMIN_LISTEN, &METRICS_LISTEN].map(|setting| values.get(setting, parse::maybe_addresses));
    match (by_name?, by_alias?) {
        (Some(_), Some(_)) => {
            let message = "it is another name of --admin-listen: give one of them".to_owned();
            values.refuse(&METRICS_LISTEN, message);
            None
        }
        (by_name, by_alias) => Some(by_name.or(by_alias)),
    }
}

/// The certificate and its key, of which neither is of use alone, and what clients must show.
fn tls(values: &mut Values<'_>) -> Option<Option<ServerTls>> {
    let [certificate, key, client_ca] =
        [&TLS_CERT, &TLS_KEY, &TLS_CLIENT_CA].map(|setting| values.get(setting, parse::path));
    let client_required =
        values.get(&TLS_CLIENT_AUTH, parse::choice(&[("optional", false), ("required", true)]));
    let (client_ca, client_required) = (client_ca?, client_required?);
    if client_ca.is_none() && values.is_given(&TLS_CLIENT_AUTH) {
        let message = "clients are asked for no certificate: add --tls-client-ca";
        values.refuse(&TLS_CLIENT_AUTH, message.to_owned());
    }
    match (certificate?, key?) {
        (Some(certificate), Some(key)) => {
            Some(Some(ServerTls { certificate, key, client_ca, client_required }))
        }
        (None, None) if client_ca.is_some() => {
            let message = "clients show certificates to a server that has one: add --tls-cert and \
                --tls-key";
            values.refuse(&TLS_CLIENT_CA, message.to_owned());
            None
        }
        (None, None) => Some(None),
        (Some(_), None) => {
            values.refuse(&TLS_CERT, "the certificate's key is missing: add --tls-key".to_owned());
            None
        }
        (None, Some(_)) => {
            values.refuse(&TLS_KEY, "the key's certificate is missing: add --tls-cert".to_owned());
            None
        }
    }
}
