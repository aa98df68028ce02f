//! The settings of commands that call a server.

use std::path::PathBuf;
use std::time::Duration;

use super::parse;
use super::setting::{Setting, settings};
use super::values::Values;

settings! {
    /// The caller of a server.
    pub struct Caller {
        /// The maximum time to wait for an answer. Keep it longer than the server's --call-timeout:
        /// then the server's error arrives, which says what failed.
        pub timeout: Duration = ("TIME", "12s", parse::positive),
        /// The file with the caller's token.
        pub token_file: Option<PathBuf> = ("FILE", "", parse::path),
        /// The server's certificate authorities, as PEM, instead of the system's.
        pub ca: Option<PathBuf> = ("FILE", "", parse::path),
        /// The caller's certificate, as PEM.
        pub cert: Option<PathBuf> = ("FILE", "", parse::path),
        /// The key of the caller's certificate, as PEM.
        pub key: Option<PathBuf> = ("FILE", "", parse::path),
    }
    check = check_certificate;
}

settings! {
    /// The output.
    #[derive(Copy)]
    pub struct Output {
        /// Print JSON, one object per line, instead of tables.
        pub json: bool = switch,
    }
}

settings! {
    /// The server to call, and the parameters of calls.
    pub struct Client {
        /// The server to call.
        pub server: String = ("URL", "http://127.0.0.1:7171", server),
        /// The tenant of the users.
        pub tenant: String = ("TENANT", "default", parse::text),
        /// The caller.
        pub caller: Caller,
        /// The output.
        pub output: Output,
    }
}

settings! {
    /// The server of a command without `--tenant`.
    pub struct Server {
        /// The server to call.
        pub server: String = ("URL", "http://127.0.0.1:7171", server),
        /// The caller.
        pub caller: Caller,
        /// The output.
        pub output: Output,
    }
}

settings! {
    /// The purpose of the calls. The history has it beside each change.
    #[derive(Default)]
    pub struct Purpose {
        /// The reason, which the history has beside each change.
        pub reason: String = ("TEXT", "", parse::text),
        /// The id that the changes of one operation share in the history.
        pub operation_id: String = ("ID", "", parse::text),
    }
}

settings! {
    /// The server of a command that changes something, with the purpose of its calls.
    pub struct ChangeClient {
        /// The server.
        pub client: Client,
        /// The purpose.
        pub purpose: Purpose,
    }
}

settings! {
    /// The server of a command that changes tenants by name, with the purpose of its calls.
    pub struct ChangeServer {
        /// The server.
        pub server: Server,
        /// The purpose.
        pub purpose: Purpose,
    }
}

settings! {
    /// The load and the measurement.
    pub struct Bench {
        /// The server.
        pub client: Client,
        /// Connections that the callers share.
        pub connections: usize = ("N", "4", parse::count(1..=1_024)),
        /// Concurrent callers, each with one call at a time.
        pub concurrency: usize = ("N", "64", parse::count(1..=65_536)),
        /// How long to measure.
        pub duration: Duration = ("TIME", "10", parse::positive),
        /// How long to warm up before measuring.
        pub warmup: Duration = ("TIME", "2", parse::duration),
        /// Number of users, the same for each N; missing ones are loaded first.
        pub users: usize = ("N", "10000", parse::count(1..=1_000_000_000)),
        /// Assume that the users exist, without a check; `link` always checks.
        pub loaded: bool = switch,
        /// Identifiers in one batch.
        pub batch: usize = ("N", "100", parse::count(1..=100_000)),
        /// Accept answers of this age from the server's cache in `resolve` and `batch`.
        pub max_staleness: Duration = ("TIME", "0", parse::duration),
        /// Let the callers of `resolve` share calls, as the clients do.
        pub batching: bool = switch,
        /// Prefer some users, by Zipf's law, with a skew below 1 such as 0.99; 0 for none.
        pub zipf: f64 = ("SKEW", "0", parse::skew),
    }
    replace = BENCH_TENANT;
}

const BENCH_TENANT: Setting = Setting {
    key: "tenant",
    placeholder: "TENANT",
    default: "bench",
    doc: "The tenant to use; to write, one that this command created",
};

impl From<Client> for ChangeClient {
    fn from(client: Client) -> Self {
        Self { client, purpose: Purpose::default() }
    }
}

impl From<Server> for ChangeClient {
    fn from(Server { server, caller, output }: Server) -> Self {
        Client { server, tenant: String::new(), caller, output }.into()
    }
}

impl From<ChangeServer> for ChangeClient {
    fn from(ChangeServer { server, purpose }: ChangeServer) -> Self {
        Self { purpose, ..server.into() }
    }
}

fn check_certificate(caller: &mut Caller, values: &mut Values<'_>) {
    values.reject_half((Caller::cert(), &caller.cert), (Caller::key(), &caller.key));
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
