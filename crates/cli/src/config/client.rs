//! The settings of commands that call a server.

use std::path::PathBuf;
use std::time::Duration;

use super::parse;
use super::setting::Setting;
use super::values::{Resolve, Values};

/// The server to call, and the parameters of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The server's URL.
    pub server: String,
    /// The tenant of requests.
    pub tenant: String,
    /// The maximum time of a call.
    pub timeout: Duration,
    /// The file of the caller's token, if it has one.
    pub token_file: Option<PathBuf>,
    /// The file of the server's certificate authorities, instead of the system's.
    pub ca: Option<PathBuf>,
    /// The files of the caller's certificate and its key, if it has one.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The output settings.
    pub output: Output,
    /// Why the caller makes the calls.
    pub purpose: Purpose,
}

/// Why a caller makes its calls. The history has it beside each change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purpose {
    /// The reason; may be empty.
    pub reason: String,
    /// The id that the calls of one operation share; may be empty.
    pub operation_id: String,
}

/// The server of a command that changes something, with the purpose of its calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeClient(Client);

impl From<ChangeClient> for Client {
    fn from(ChangeClient(client): ChangeClient) -> Self {
        client
    }
}

/// The output settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// Whether to print JSON instead of tables.
    pub json: bool,
}

/// The load and the measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Bench {
    /// The server.
    pub client: Client,
    /// The number of connections that the callers share.
    pub connections: usize,
    /// The number of callers, each with one concurrent call.
    pub concurrency: usize,
    /// The duration of the measurement.
    pub duration: Duration,
    /// The duration of the warm-up.
    pub warmup: Duration,
    /// The number of users.
    pub users: usize,
    /// Whether to assume that the users exist.
    pub loaded: bool,
    /// Identifiers in one batch.
    pub batch: usize,
    /// The maximum age of an answer from the server's cache; zero for no cache.
    pub max_staleness: Duration,
    /// Whether look-ups share calls.
    pub batching: bool,
    /// The skew of Zipf's law for the choice of users; 0 for an even choice.
    pub zipf: f64,
}

const SERVER: Setting =
    Setting::new("server", "URL", "http://127.0.0.1:7171", "The server to call");
const TENANT: Setting = Setting::new("tenant", "TENANT", "default", "The tenant of the users");
const BENCH_TENANT: Setting = Setting::new(
    "tenant",
    "TENANT",
    "bench",
    "The tenant to use; to write, one that this command created",
);
pub const TIMEOUT: Setting =
    Setting::new("timeout", "TIME", "10s", "The maximum time to wait for an answer");
pub const TOKEN_FILE: Setting =
    Setting::new("token-file", "FILE", "", "The file with the caller's token");
pub const CA: Setting = Setting::new(
    "ca",
    "FILE",
    "",
    "The server's certificate authorities, as PEM, instead of the system's",
);
pub const CERT: Setting = Setting::new("cert", "FILE", "", "The caller's certificate, as PEM");
pub const KEY: Setting =
    Setting::new("key", "FILE", "", "The key of the caller's certificate, as PEM");
const REASON: Setting =
    Setting::new("reason", "TEXT", "", "The reason, which the history has beside each change");
const OPERATION_ID: Setting = Setting::new(
    "operation-id",
    "ID",
    "",
    "The id that the changes of one operation share in the history",
);
pub const JSON: Setting =
    Setting::switch("json", "Print JSON, one object per line, instead of tables");

const CONNECTIONS: Setting =
    Setting::new("connections", "N", "4", "Connections that the callers share");
const CONCURRENCY: Setting =
    Setting::new("concurrency", "N", "64", "Concurrent callers, each with one call at a time");
const DURATION: Setting = Setting::new("duration", "TIME", "10", "How long to measure");
const WARMUP: Setting = Setting::new("warmup", "TIME", "2", "How long to warm up before measuring");
const USERS: Setting = Setting::new(
    "users",
    "N",
    "10000",
    "Number of users, the same for each N; missing ones are loaded first",
);
const LOADED: Setting =
    Setting::switch("loaded", "Assume that the users exist, without a check; `link` always checks");
const BATCH: Setting = Setting::new("batch", "N", "100", "Identifiers in one batch");
const MAX_STALENESS: Setting = Setting::new(
    "max-staleness",
    "TIME",
    "0",
    "Accept answers of this age from the server's cache in `resolve` and `batch`",
);
const BATCHING: Setting =
    Setting::switch("batching", "Let the callers of `resolve` share calls, as the clients do");
const ZIPF: Setting = Setting::new(
    "zipf",
    "SKEW",
    "0",
    "Prefer some users, by Zipf's law, with a skew below 1 such as 0.99; 0 for none",
);

impl Resolve for Client {
    fn settings() -> Vec<&'static Setting> {
        vec![&SERVER, &TENANT, &TIMEOUT, &TOKEN_FILE, &CA, &CERT, &KEY, &JSON]
    }

    fn resolve(values: &mut Values<'_>) -> Option<Self> {
        Self::with_tenant(values, &TENANT)
    }
}

impl Resolve for ChangeClient {
    fn settings() -> Vec<&'static Setting> {
        Client::settings().into_iter().chain([&REASON, &OPERATION_ID]).collect()
    }

    fn resolve(values: &mut Values<'_>) -> Option<Self> {
        let client = Client::resolve(values);
        let (reason, operation_id) =
            (values.get(&REASON, parse::text), values.get(&OPERATION_ID, parse::text));
        let purpose = Purpose { reason: reason?, operation_id: operation_id? };
        Some(Self(Client { purpose, ..client? }))
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
            purpose: Purpose::default(),
        })
    }
}

/// The caller's certificate with its key.
pub fn certificate(values: &mut Values<'_>) -> Option<Option<(PathBuf, PathBuf)>> {
    let (certificate, key) = (values.get(&CERT, parse::path), values.get(&KEY, parse::path));
    match (certificate?, key?) {
        (Some(certificate), Some(key)) => Some(Some((certificate, key))),
        (None, None) => Some(None),
        (Some(_), None) => {
            values.reject(&CERT, "the certificate's key is missing: add --key".to_owned());
            None
        }
        (None, Some(_)) => {
            values.reject(&KEY, "the key's certificate is missing: add --cert".to_owned());
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
        client.into_iter().chain(own).chain([&MAX_STALENESS, &BATCHING, &ZIPF]).collect()
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
        let batching = values.switch(&BATCHING);
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
            batching: batching?,
            zipf: zipf?,
        })
    }
}

/// A URL with a host and an optional port, and nothing else.
fn server(text: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} is not a server: write a URL such as http://127.0.0.1:7171");
    let uri = text.parse::<http::Uri>().map_err(|_| wrong())?;
    match (uri.scheme_str(), uri.authority()) {
        (Some("http" | "https"), Some(authority)) if authority.as_str().contains('@') => {
            Err("a server has no user and no password: remove the part up to the @".to_owned())
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
