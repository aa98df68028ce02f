//! The address of a server, and the credentials and encryption that it asks for.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::{Setting, Values, parse};

/// The address of a server, and its protection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAccess {
    /// The addresses to listen on: those of the host name, tried in order.
    pub listen: Vec<SocketAddr>,
    /// The credentials file, if callers need credentials.
    pub credentials: Option<PathBuf>,
    /// The files of the certificate and its key, if connections are encrypted.
    pub tls: Option<(PathBuf, PathBuf)>,
}

const LISTEN: Setting = Setting {
    name: "listen",
    value: "HOST:PORT",
    default: "127.0.0.1:7171",
    help: "Where to listen; port 0 takes a free one",
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
    pub const SETTINGS: [&Setting; 6] =
        [&LISTEN, &CREDENTIALS, &TLS_CERT, &TLS_KEY, &BEHIND_PROXY, &INSECURE];

    /// Reads and checks them. An address that other machines can reach needs encryption and
    /// credentials, unless the settings say otherwise.
    pub fn resolve(values: &mut Values<'_>) -> Option<Self> {
        let listen = values.get(&LISTEN, parse::addresses);
        let credentials = values.get(&CREDENTIALS, parse::path);
        let tls = tls(values);
        let behind_proxy = values.switch(&BEHIND_PROXY);
        let insecure = values.switch(&INSECURE);
        let access = Self { listen: listen?, credentials: credentials?, tls: tls? };
        let (behind_proxy, insecure) = (behind_proxy?, insecure?);

        if behind_proxy && access.credentials.is_none() {
            let message = "the proxy's callers need credentials: add --credentials FILE";
            values.refuse(&BEHIND_PROXY, message.to_owned());
        } else if let Some(missing) = access.missing(behind_proxy).filter(|_| !insecure) {
            let outside = access.outside().map(ToString::to_string).unwrap_or_default();
            let message = format!(
                "other machines can reach {outside}, and {missing} missing: without it anybody \
                 there could read and change every user. Give {ADVICE}, listen on 127.0.0.1, or \
                 take the risk with --insecure"
            );
            values.refuse(&LISTEN, message);
        }
        Some(access)
    }

    /// The first address that other machines can reach.
    fn outside(&self) -> Option<&SocketAddr> {
        self.listen.iter().find(|address| !address.ip().to_canonical().is_loopback())
    }

    /// The protection that an address lacks which other machines can reach.
    fn missing(&self, behind_proxy: bool) -> Option<&'static str> {
        self.outside()?;
        match (self.tls.is_some() || behind_proxy, self.credentials.is_some()) {
            (true, true) => None,
            (false, true) => Some("TLS is"),
            (true, false) => Some("credentials are"),
            (false, false) => Some("TLS and credentials are"),
        }
    }
}

const ADVICE: &str = "--tls-cert, --tls-key and --credentials";

/// The certificate and its key, of which neither is of use alone.
fn tls(values: &mut Values<'_>) -> Option<Option<(PathBuf, PathBuf)>> {
    let certificate = values.get(&TLS_CERT, parse::path);
    let key = values.get(&TLS_KEY, parse::path);
    match (certificate?, key?) {
        (Some(certificate), Some(key)) => Some(Some((certificate, key))),
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
