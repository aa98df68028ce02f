//! The settings of `polynym serve`.

use std::time::Duration;

use polynym_cli::config::{Values, parse, settings};
use polynym_deliver::Network;

use super::access::ServerAccess;
use super::http::ServerHttp;
use super::memory;
use super::store::{StoreChoice, StoreSettings};
use super::telemetry::Telemetry;

settings! {
    /// The settings of a server.
    pub struct Serve {
        /// The addresses, and their protection.
        pub access: ServerAccess,
        /// The location of the store.
        pub location: StoreSettings,
        /// Time to wait at the start for a MongoDB that cannot be reached; 0 to end at once.
        pub wait_for_store: Duration = ("TIME", "60s", parse::duration),
        /// Create the embedded store if it does not exist; implied by --sample.
        pub create: bool = switch,
        /// Load a few dozen made-up users; without --store, into a temporary store.
        pub sample: bool = switch,
        /// Serve an empty temporary store for tests, on a free port, and print the address as JSON.
        pub ephemeral: bool = switch,
        /// Maximum memory for cached pages of the embedded store; by default, a quarter of the
        /// memory limit of the server's cgroup, and at most 1GiB.
        pub cache: usize = ("SIZE", "", cache),
        /// Maximum memory for hints of identities' owners, 20 bytes for each; 0 for no hints.
        pub hints: usize = ("SIZE", "64MiB", parse::size),
        /// Let concurrent mutations share a sync to the disk.
        pub group_commit: bool = ("on|off", "on", parse::switch),
        /// Let concurrent look-ups share reads of MongoDB; other stores do not need it.
        pub coalesce: bool = ("on|off", "on", parse::switch),
        /// Maximum memory for cached look-ups with max_staleness, on MongoDB; 0 for no cache.
        pub lookup_cache: usize = ("SIZE", "0", parse::optional_cache_size),
        /// Maximum items of a batch request.
        pub max_batch: usize = ("N", "1000", parse::count(1..=MAX_COUNT)),
        /// Maximum identities of a user.
        pub max_identities: usize = ("N", "100", parse::count(1..=MAX_COUNT)),
        /// Maximum attributes of a user.
        pub max_attributes: usize = ("N", "200", parse::count(0..=MAX_COUNT)),
        /// Maximum identifiers held for a user.
        pub max_holds: usize = ("N", "100", parse::count(0..=MAX_COUNT)),
        /// Maximum users merged into one.
        pub max_merged: usize = ("N", "100", parse::count(0..=MAX_COUNT)),
        /// closed: only admins create tenants; open: the first change in a tenant creates it, too.
        pub tenants: Tenants = ("closed|open", "closed", tenants),
        /// Maximum total bytes of a user, up to 2MiB.
        pub max_user_size: usize = ("SIZE", "512KiB", parse::user_size),
        /// Networks to which events are delivered although they are not public, also without TLS,
        /// with commas between them.
        pub delivery_allow: Vec<Network> = ("NETWORKS", "", networks),
        /// Maximum time of a call.
        pub call_timeout: Duration = ("TIME", "10s", parse::positive),
        /// Maximum concurrent look-ups, and also mutations; more are rejected.
        pub max_calls: usize = ("N", "1024", parse::count(1..=MAX_COUNT)),
        /// Maximum concurrent connections; more have to wait.
        pub max_connections: usize = ("N", "10000", parse::count(1..=MAX_COUNT)),
        /// Age at which clients are asked to reconnect.
        pub connection_age: Duration = ("TIME", "1h", parse::positive),
        /// Idle time after which clients are asked to reconnect.
        pub connection_idle: Duration = ("TIME", "5m", parse::positive),
        /// Time for which a server that is to stop still serves, without being ready; 5s by default
        /// under systemd and Kubernetes.
        pub drain_delay: Duration = ("TIME", "0", parse::duration),
        /// Time for calls and streams to finish after that.
        pub drain: Duration = ("TIME", "10s", parse::duration),
        /// Threads that handle calls; by default, one per core.
        pub threads: usize = ("N", "", threads),
        /// The log and the traces.
        pub telemetry: Telemetry,
    }
    prepare = set_defaults;
    check = choose_store;
}

/// The creation of tenants other than the default one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tenants {
    /// Only admins create tenants.
    Closed,
    /// The first change in a tenant creates it, too.
    Open,
}

const MAX_COUNT: usize = 1_000_000;
/// The variables of service managers and of Kubernetes, whose balancers need time to learn that a
/// server is to stop.
const SUPERVISORS: [&str; 2] = ["NOTIFY_SOCKET", "KUBERNETES_SERVICE_HOST"];

/// The defaults of a server with a supervisor, of one with made-up users, and of one for tests.
fn set_defaults(values: &mut Values<'_>) {
    if SUPERVISORS.iter().any(|variable| values.has_variable(variable)) {
        values.set_default(Serve::drain_delay(), "5s");
    }
    if values.is_on(Serve::sample()) {
        values.set_default(ServerHttp::console(), "true");
        if !values.is_given(ServerAccess::listen()) {
            values.set_default(ServerHttp::http_listen(), "127.0.0.1:7180");
        }
    }
    if values.is_on(Serve::ephemeral()) {
        values.set_default(ServerAccess::listen(), "127.0.0.1:0");
        values.set_default(ServerHttp::http_listen(), "127.0.0.1:0");
        values.set_default(Serve::drain_delay(), "0");
        values.set_default(Serve::tenants(), "open");
        values.set_default(Telemetry::log(), "warn");
        for setting in [StoreSettings::store(), StoreSettings::mongodb_uri_file()] {
            if values.is_given(setting) {
                let flag = setting.flag();
                let message = format!(
                    "a server with --ephemeral has an empty store of its own: omit --{flag}"
                );
                values.reject(setting, message);
            }
        }
    }
}

/// A server with made-up users, or for tests, has a temporary store unless one is given.
fn choose_store(serve: &mut Serve, values: &mut Values<'_>) {
    let is_given = [StoreSettings::store(), StoreSettings::mongodb_uri_file()]
        .into_iter()
        .any(|setting| values.is_given(setting));
    if (serve.sample || serve.ephemeral) && !is_given {
        serve.location.store = StoreChoice::Temporary;
    }
}

fn tenants(text: &str) -> Result<Tenants, String> {
    parse::choice(&[("open", Tenants::Open), ("closed", Tenants::Closed)])(text)
}

fn cache(text: &str) -> Result<usize, String> {
    if text.is_empty() { Ok(memory::cache_bytes()) } else { parse::cache_size(text) }
}

fn networks(text: &str) -> Result<Vec<Network>, String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::parse).collect()
}

fn threads(text: &str) -> Result<usize, String> {
    if text.is_empty() {
        return Ok(std::thread::available_parallelism().map_or(1, usize::from));
    }
    parse::count(1..=1_024)(text)
}
