//! The settings of `polynym serve`.

use std::time::Duration;

use super::access::{LISTEN, ServerAccess};
use super::http::{HTTP_LISTEN, ServerHttp};
use super::setting::Setting;
use super::store::{STORE, StoreChoice};
use super::telemetry::{LOG, Telemetry};
use super::values::{Resolve, Values};
use super::{parse, store};

/// The settings of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Serve {
    /// The addresses, and their protection.
    pub access: ServerAccess,
    /// The location of the store.
    pub store: StoreChoice,
    /// Whether to create an embedded store that does not exist.
    pub create: bool,
    /// Whether to load made-up users.
    pub sample: bool,
    /// Whether the server is for tests: it ends with the program that started it.
    pub ephemeral: bool,
    /// Memory for the embedded store's pages, in bytes.
    pub cache_bytes: usize,
    /// Memory for hints of identities' owners, in bytes; 0 for no hints.
    pub hint_bytes: usize,
    /// Whether mutations may share a sync.
    pub group_commit: bool,
    /// Whether look-ups may share reads of MongoDB.
    pub coalesce: bool,
    /// Memory for the cache of look-ups of MongoDB, in bytes; 0 for no cache.
    pub lookup_cache_bytes: usize,
    /// Items in one batch request.
    pub max_batch: usize,
    /// Identities of one user.
    pub max_identities: usize,
    /// Attributes of one user.
    pub max_attributes: usize,
    /// Identifiers that are held for one user.
    pub max_holds: usize,
    /// Users that were merged into one.
    pub max_merged: usize,
    /// Whether only admins create tenants other than the default one.
    pub closed_tenants: bool,
    /// Total bytes of one user.
    pub max_user_bytes: usize,
    /// The maximum time of a call.
    pub call_timeout: Duration,
    /// Concurrent calls.
    pub max_calls: usize,
    /// Concurrent connections.
    pub max_connections: usize,
    /// The age at which a connection is closed.
    pub connection_age: Duration,
    /// The time without calls after which a connection is closed.
    pub connection_idle: Duration,
    /// The time for calls to finish after a stop was requested.
    pub drain: Duration,
    /// Threads that handle calls.
    pub threads: usize,
    /// The log and the traces.
    pub telemetry: Telemetry,
}

const CREATE: Setting = Setting::switch(
    "create",
    "Create the embedded store if it does not exist; implied by --sample",
);
const SAMPLE: Setting = Setting::switch(
    "sample",
    "Load a few dozen made-up users; without --store, into a temporary store",
);
const EPHEMERAL: Setting = Setting::switch(
    "ephemeral",
    "Serve an empty temporary store for tests, on a free port, and print the address as JSON",
);
/// The settings whose defaults are others in a server for tests.
const EPHEMERAL_DEFAULTS: [(&Setting, &str); 4] =
    [(&LISTEN, "127.0.0.1:0"), (&HTTP_LISTEN, "127.0.0.1:0"), (&TENANTS, "open"), (&LOG, "warn")];
const CACHE: Setting =
    Setting::new("cache", "SIZE", "1GiB", "Maximum memory for cached pages of the embedded store");
const HINTS: Setting = Setting::new(
    "hints",
    "SIZE",
    "64MiB",
    "Maximum memory for hints of identities' owners, 20 bytes for each; 0 for no hints",
);
const GROUP_COMMIT: Setting = Setting::new(
    "group-commit",
    "on|off",
    "on",
    "Let concurrent mutations share a sync to the disk",
);
const COALESCE: Setting = Setting::new(
    "coalesce",
    "on|off",
    "on",
    "Let concurrent look-ups share reads of MongoDB; other stores do not need it",
);
const LOOKUP_CACHE: Setting = Setting::new(
    "lookup-cache",
    "SIZE",
    "0",
    "Maximum memory for cached look-ups with max_staleness, on MongoDB; 0 for no cache",
);
const MAX_BATCH: Setting =
    Setting::new("max-batch", "N", "1000", "Maximum items of a batch request");
const MAX_IDENTITIES: Setting =
    Setting::new("max-identities", "N", "100", "Maximum identities of a user");
const MAX_ATTRIBUTES: Setting =
    Setting::new("max-attributes", "N", "200", "Maximum attributes of a user");
const MAX_HOLDS: Setting =
    Setting::new("max-holds", "N", "100", "Maximum identifiers held for a user");
const MAX_MERGED: Setting = Setting::new("max-merged", "N", "100", "Maximum users merged into one");
const TENANTS: Setting = Setting::new(
    "tenants",
    "closed|open",
    "closed",
    "closed: only admins create tenants; open: the first change in a tenant creates it, too",
);
const MAX_USER_SIZE: Setting =
    Setting::new("max-user-size", "SIZE", "512KiB", "Maximum total bytes of a user, up to 2MiB");
const CALL_TIMEOUT: Setting = Setting::new("call-timeout", "TIME", "10s", "Maximum time of a call");
const MAX_CALLS: Setting = Setting::new(
    "max-calls",
    "N",
    "1024",
    "Maximum concurrent look-ups, and also mutations; more are rejected",
);
const MAX_CONNECTIONS: Setting = Setting::new(
    "max-connections",
    "N",
    "10000",
    "Maximum concurrent connections; more have to wait",
);
const CONNECTION_AGE: Setting =
    Setting::new("connection-age", "TIME", "1h", "Age at which clients are asked to reconnect");
const CONNECTION_IDLE: Setting = Setting::new(
    "connection-idle",
    "TIME",
    "5m",
    "Idle time after which clients are asked to reconnect",
);
const DRAIN: Setting = Setting::new(
    "drain",
    "TIME",
    "10s",
    "Time for calls and streams to finish after a stop was requested",
);
const THREADS: Setting =
    Setting::new("threads", "N", "", "Threads that handle calls; by default, one per core");
const MAX_COUNT: usize = 1_000_000;

impl Resolve for Serve {
    fn settings() -> Vec<&'static Setting> {
        let own = [
            &STORE,
            &CREATE,
            &SAMPLE,
            &EPHEMERAL,
            &CACHE,
            &HINTS,
            &GROUP_COMMIT,
            &COALESCE,
            &LOOKUP_CACHE,
            &MAX_BATCH,
            &MAX_IDENTITIES,
            &MAX_ATTRIBUTES,
            &MAX_HOLDS,
            &MAX_MERGED,
            &TENANTS,
            &MAX_USER_SIZE,
            &CALL_TIMEOUT,
            &MAX_CALLS,
            &MAX_CONNECTIONS,
            &CONNECTION_AGE,
            &CONNECTION_IDLE,
            &DRAIN,
            &THREADS,
        ];
        let access = ServerAccess::SETTINGS.into_iter().chain(ServerHttp::SETTINGS);
        access.chain(own).chain(Telemetry::SETTINGS).collect()
    }

    /// Parses each value before returning at the first error, so that all errors are reported.
    fn resolve(values: &mut Values<'_>) -> Option<Self> {
        let ephemeral = ephemeral(values);
        let (create, sample) = (values.switch(&CREATE), values.switch(&SAMPLE));
        let access = ServerAccess::resolve(values, sample == Some(true));
        let store = store(values, sample == Some(true), ephemeral == Some(true));
        let cache_bytes = values.get(&CACHE, parse::cache_size);
        let hint_bytes = values.get(&HINTS, parse::size);
        let group_commit = values.get(&GROUP_COMMIT, parse::switch);
        let coalesce = values.get(&COALESCE, parse::switch);
        let lookup_cache_bytes = values.get(&LOOKUP_CACHE, parse::optional_cache_size);
        let [max_batch, max_identities] = [&MAX_BATCH, &MAX_IDENTITIES]
            .map(|setting| values.get(setting, parse::count(1..=MAX_COUNT)));
        let [max_attributes, max_holds, max_merged] = [&MAX_ATTRIBUTES, &MAX_HOLDS, &MAX_MERGED]
            .map(|setting| values.get(setting, parse::count(0..=MAX_COUNT)));
        let closed_tenants = values.get(&TENANTS, closed_tenants);
        let max_user_bytes = values.get(&MAX_USER_SIZE, parse::user_size);
        let call_timeout = values.get(&CALL_TIMEOUT, parse::positive);
        let [max_calls, max_connections] = [&MAX_CALLS, &MAX_CONNECTIONS]
            .map(|setting| values.get(setting, parse::count(1..=MAX_COUNT)));
        let connection_age = values.get(&CONNECTION_AGE, parse::positive);
        let connection_idle = values.get(&CONNECTION_IDLE, parse::positive);
        let drain = values.get(&DRAIN, parse::duration);
        let threads = values.get(&THREADS, threads);
        let telemetry = Telemetry::resolve(values);

        Some(Self {
            access: access?,
            store: store?,
            create: create?,
            sample: sample?,
            ephemeral: ephemeral?,
            cache_bytes: cache_bytes?,
            hint_bytes: hint_bytes?,
            group_commit: group_commit?,
            coalesce: coalesce?,
            lookup_cache_bytes: lookup_cache_bytes?,
            max_batch: max_batch?,
            max_identities: max_identities?,
            max_attributes: max_attributes?,
            max_holds: max_holds?,
            max_merged: max_merged?,
            closed_tenants: closed_tenants?,
            max_user_bytes: max_user_bytes?,
            call_timeout: call_timeout?,
            max_calls: max_calls?,
            max_connections: max_connections?,
            connection_age: connection_age?,
            connection_idle: connection_idle?,
            drain: drain?,
            threads: threads?,
            telemetry: telemetry?,
        })
    }
}

fn closed_tenants(text: &str) -> Result<bool, String> {
    parse::choice(&[("open", false), ("closed", true)])(text)
}

/// Whether the server is for tests. Then it has other defaults.
fn ephemeral(values: &mut Values<'_>) -> Option<bool> {
    let ephemeral = values.switch(&EPHEMERAL);
    if ephemeral == Some(true) {
        values.set_defaults(&EPHEMERAL_DEFAULTS);
    }
    ephemeral
}

fn store(values: &mut Values<'_>, sample: bool, ephemeral: bool) -> Option<StoreChoice> {
    match values.is_given(&STORE) {
        false if sample || ephemeral => Some(StoreChoice::Temporary),
        true if ephemeral => {
            let message = "a server with --ephemeral has an empty store of its own: omit --store";
            values.reject(&STORE, message.to_owned());
            None
        }
        _ => values.get(&STORE, store::choice),
    }
}

fn threads(text: &str) -> Result<usize, String> {
    if text.is_empty() {
        return Ok(std::thread::available_parallelism().map_or(1, usize::from));
    }
    parse::count(1..=1_024)(text)
}
