//! The settings of the commands that talk to a server.

use std::path::PathBuf;
use std::time::Duration;

use super::{Resolve, Setting, Values, parse};

/// Which server to talk to, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The server's URL.
    pub server: String,
    /// The tenant to name in requests.
    pub tenant: String,
    /// The longest that a call may take.
    pub timeout: Duration,
    /// The file of the caller's token, if it has one.
    pub token_file: Option<PathBuf>,
    /// The file of the authorities that the server's certificate may be of, in place of the
    /// system's.
    pub ca: Option<PathBuf>,
    /// The files of the caller's certificate and its key, if it has one.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The output settings.
    pub output: Output,
}

/// The output settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// As JSON, for programs, rather than as tables.
    pub json: bool,
}

/// The load and the measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Bench {
    /// Which server.
    pub client: Client,
    /// The number of connections that the callers share.
    pub connections: usize,
    /// The number of callers, each with one call in flight.
    pub concurrency: usize,
    /// The duration of the measurement.
    pub duration: Duration,
    /// The duration of the warm-up.
    pub warmup: Duration,
    /// The number of users.
    pub users: usize,
    /// Whether to take it that they are there.
    pub loaded: bool,
    /// Identifiers in one batch.
    pub batch: usize,
    /// The greatest age of an answer from the server's cache; zero for none from there.
    pub max_staleness: Duration,
    /// The skew of Zipf's law by which users are asked for; 0 asks for all alike.
    pub zipf: f64,
}

const SERVER: Setting = Setting {
    name: "server",
    value: "URL",
    default: "http://127.0.0.1:7171",
    help: "The server to ask",
};
const TENANT: Setting = Setting {
    name: "tenant",
    value: "TENANT",
    default: "default",
    help: "The tenant whose users are meant",
};
const BENCH_TENANT: Setting = Setting {
    name: "tenant",
    value: "TENANT",
    default: "bench",
    help: "The tenant to work in: one that this made or makes, to write",
};
pub const TIMEOUT: Setting = Setting {
    name: "timeout",
    value: "TIME",
    default: "10s",
    help: "The longest to wait for an answer",
};
pub const TOKEN_FILE: Setting = Setting {
    name: "token-file",
    value: "FILE",
    default: "",
    help: "The file of the token to call the server with",
};
pub const CA: Setting = Setting {
    name: "ca",
    value: "FILE",
    default: "",
    help: "The authorities of the server's certificate, as PEM, in place of the system's",
};
pub const CERT: Setting = Setting {
    name: "cert",
    value: "FILE",
    default: "",
    help: "The caller's certificate to call the server with, as PEM",
};
pub const KEY: Setting = Setting {
    name: "key",
    value: "FILE",
    default: "",
    help: "The key of the caller's certificate, as PEM",
};
pub const JSON: Setting = Setting {
    name: "json",
    value: "",
    default: "false",
    help: "Print JSON, one object a line, in place of tables",
};

const CONNECTIONS: Setting = Setting {
    name: "connections",
    value: "N",
    default: "4",
    help: "Connections to spread the callers over",
};
const CONCURRENCY: Setting = Setting {
    name: "concurrency",
    value: "N",
    default: "64",
    help: "Callers, each with one call under way",
};
const DURATION: Setting =
    Setting { name: "duration", value: "TIME", default: "10", help: "How long to measure" };
const WARMUP: Setting = Setting {
    name: "warmup",
    value: "TIME",
    default: "2",
    help: "How long to run unmeasured first",
};
const USERS: Setting = Setting {
    name: "users",
    value: "N",
    default: "10000",
    help: "Users, always the same for the same N; those that are missing are loaded first",
};
const LOADED: Setting = Setting {
    name: "loaded",
    value: "",
    default: "false",
    help: "Take it that the users are there, and do not look first; `link` looks all the same",
};
const BATCH: Setting =
    Setting { name: "batch", value: "N", default: "100", help: "Identifiers in one batch" };
const MAX_STALENESS: Setting = Setting {
    name: "max-staleness",
    value: "TIME",
    default: "0",
    help: "Accept answers of this age from the server's cache in `resolve` and `batch`",
};
const ZIPF: Setting = Setting {
    name: "zipf",
    value: "SKEW",
    default: "0",
    help: "Look up few users often, by Zipf's law: a skew below 1 such as 0.99; 0 is evenly",
};

impl Resolve for Client {
    fn settings() -> Vec<&'static Setting> {
        vec![&SERVER, &TENANT, &TIMEOUT, &TOKEN_FILE, &CA, &CERT, &KEY, &JSON]
    }

    fn resolve(values: &mut Values<'_>) -> Option<Self> {
        Self::with_tenant(values, &TENANT)
    }
}

impl Client {
    fn with_tenant(values: &mut Values<'_>, tenant: &Setting) -> Option<Self> {
        let server = values.get(&SERVER, server);
        let tenant = values.get(tenant, parse::text);
        let timeout = values.get(&TIMEOUT, parse::positive);
        let token_file = values.get(&TOKEN_FILE, parse::path);
        let ca = values.get(&CA, parse::path);
        let certificate = certificate(values);
        let output = Output::resolve(values);

        Some(Self {
            server: server?,
            tenant: tenant?,
            timeout: timeout?,
            token_file: token_file?,
            ca: ca?,
            certificate: certificate?,
            output: output?,
        })
    }
}

/// The caller's certificate and its key, of which neither is of use alone.
pub fn certificate(values: &mut Values<'_>) -> Option<Option<(PathBuf, PathBuf)>> {
    let (certificate, key) = (values.get(&CERT, parse::path), values.get(&KEY, parse::path));
    match (certificate?, key?) {
        (Some(certificate), Some(key)) => Some(Some((certificate, key))),
        (None, None) => Some(None),
        (Some(_), None) => {
            values.refuse(&CERT, "the certificate's key is missing: add --key".to_owned());
            None
        }
        (None, Some(_)) => {
            values.refuse(&KEY, "the key's certificate is missing: add --cert".to_owned());
            None
        }
    }
}

impl Resolve for Output {
    fn settings() -> Vec<&'static Setting> {
        vec![&JSON]
    }

    fn resolve(values: &mut Values<'_>) -> Option<Self> {
        Some(Self { json: values.switch(&JSON)? })
    }
}

impl Resolve for Bench {
    fn settings() -> Vec<&'static Setting> {
        let client = [&SERVER, &BENCH_TENANT, &TIMEOUT, &TOKEN_FILE, &CA, &CERT, &KEY, &JSON];
        let own = [&CONNECTIONS, &CONCURRENCY, &DURATION, &WARMUP, &USERS, &LOADED, &BATCH];
        client.into_iter().chain(own).chain([&MAX_STALENESS, &ZIPF]).collect()
    }

    fn resolve(values: &mut Values<'_>) -> Option<Self> {
        let client = Client::with_tenant(values, &BENCH_TENANT);
        let connections = values.get(&CONNECTIONS, parse::count(1..=1_024));
        let concurrency = values.get(&CONCURRENCY, parse::count(1..=65_536));
        let duration = values.get(&DURATION, parse::positive);
        let warmup = values.get(&WARMUP, parse::duration);
        let users = values.get(&USERS, parse::count(1..=1_000_000_000));
        let loaded = values.switch(&LOADED);
        let batch = values.get(&BATCH, parse::count(1..=100_000));
        let max_staleness = values.get(&MAX_STALENESS, parse::duration);
        let zipf = values.get(&ZIPF, parse::skew);

        Some(Self {
            client: client?,
            connections: connections?,
            concurrency: concurrency?,
            duration: duration?,
            warmup: warmup?,
            users: users?,
            loaded: loaded?,
            batch: batch?,
            max_staleness: max_staleness?,
            zipf: zipf?,
        })
    }
}

/// A host, and maybe a port: whatever else a URL can have would not be used.
fn server(text: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} is no server: write a URL such as http://127.0.0.1:7171");
    let uri = text.parse::<http::Uri>().map_err(|_| wrong())?;
    match (uri.scheme_str(), uri.authority()) {
        (Some("http" | "https"), Some(authority)) if authority.as_str().contains('@') => {
            Err("a server has no user and no password: leave out what stands before the @"
                .to_owned())
        }
        (Some(scheme @ ("http" | "https")), Some(authority)) if !authority.host().is_empty() => {
            match uri.path_and_query() {
                Some(rest) if rest.as_str() != "/" => {
                    Err(format!("a server has no path: write {scheme}://{authority}"))
                }
                _ => Ok(text.to_owned()),
            }
        }
        _ => Err(wrong()),
    }
}
