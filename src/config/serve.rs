//! The settings of `polynym serve`.

use std::time::Duration;

use super::access::ServerAccess;
use super::store::{STORE, StoreChoice};
use super::telemetry::Telemetry;
use super::{Resolve, Setting, Values, parse, store};

/// The settings of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Serve {
    /// The address, and its protection.
    pub access: ServerAccess,
    /// The location of the store.
    pub store: StoreChoice,
    /// Whether a store is made where there is none.
    pub create: bool,
    /// Whether made-up users shall be there.
    pub sample: bool,
    /// Memory for the embedded store's pages, in bytes.
    pub cache_bytes: usize,
    /// Memory for hints of identities' owners, in bytes; 0 turns them off.
    pub hint_bytes: usize,
    /// Whether mutations may share a sync.
    pub group_commit: bool,
    /// Whether look-ups may share reads of MongoDB.
    pub coalesce: bool,
    /// Memory for the cache of look-ups of MongoDB, in bytes; 0 turns it off.
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
    /// Whether only admins make tenants other than the default one.
    pub closed_tenants: bool,
    /// Bytes of one user, all in all.
    pub max_user_bytes: usize,
    /// The longest that a call may take.
    pub call_timeout: Duration,
    /// Calls under way at once.
    pub max_calls: usize,
    /// Connections at once.
    pub max_connections: usize,
    /// The age at which a connection is closed.
    pub connection_age: Duration,
    /// The time without calls after which a connection is closed.
    pub connection_idle: Duration,
    /// The time that calls have to finish after the server was asked to stop.
    pub drain: Duration,
    /// Threads that handle calls.
    pub threads: usize,
    /// The log and the traces.
    pub telemetry: Telemetry,
}

pub const fn setting(
    name: &'static str,
    value: &'static str,
    default: &'static str,
    help: &'static str,
) -> Setting {
    Setting { name, value, default, help }
}

const CREATE: Setting = setting(
    "create",
    "",
    "false",
    "Make an empty embedded store where there is none; --sample does so, too",
);
const SAMPLE: Setting = setting(
    "sample",
    "",
    "false",
    "Load a few dozen made-up users; without --store, into a folder that goes at exit",
);
const CACHE: Setting =
    setting("cache", "SIZE", "1GiB", "Most memory for caching what the embedded store reads");
const HINTS: Setting = setting(
    "hints",
    "SIZE",
    "64MiB",
    "Most memory for remembering which user owned an identity: 20 bytes for each; 0 turns it off",
);
const GROUP_COMMIT: Setting = setting(
    "group-commit",
    "on|off",
    "on",
    "Let mutations that wait together share one sync to the disk",
);
const COALESCE: Setting = setting(
    "coalesce",
    "on|off",
    "on",
    "Let look-ups that wait together share reads of MongoDB; no other store needs it",
);
const LOOKUP_CACHE: Setting = setting(
    "lookup-cache",
    "SIZE",
    "0",
    "Most memory for answers to look-ups with max_staleness, on MongoDB; 0 turns it off",
);
const MAX_BATCH: Setting = setting("max-batch", "N", "1000", "Items in one batch request");
const MAX_IDENTITIES: Setting = setting("max-identities", "N", "100", "Identities of one user");
const MAX_ATTRIBUTES: Setting = setting("max-attributes", "N", "200", "Attributes of one user");
const MAX_HOLDS: Setting =
    setting("max-holds", "N", "100", "Identifiers that are held for one user");
const MAX_MERGED: Setting = setting("max-merged", "N", "100", "Users that were merged into one");
const TENANTS: Setting = setting(
    "tenants",
    "closed|open",
    "closed",
    "Whether only admins make tenants, or the first change in one, too",
);
const MAX_USER_SIZE: Setting =
    setting("max-user-size", "SIZE", "512KiB", "Bytes of one user, all in all; at most 2MiB");
const CALL_TIMEOUT: Setting =
    setting("call-timeout", "TIME", "10s", "The longest that a call may take");
const MAX_CALLS: Setting = setting(
    "max-calls",
    "N",
    "1024",
    "Look-ups under way at once, and as many mutations; more are refused",
);
const MAX_CONNECTIONS: Setting =
    setting("max-connections", "N", "10000", "Connections at once; more have to wait");
const CONNECTION_AGE: Setting =
    setting("connection-age", "TIME", "1h", "The age at which a connection is asked to reconnect");
const CONNECTION_IDLE: Setting = setting(
    "connection-idle",
    "TIME",
    "5m",
    "The time without calls after which a connection is asked to reconnect",
);
const DRAIN: Setting =
    setting("drain", "TIME", "10s", "How long calls may take to finish once asked to stop");
const THREADS: Setting =
    setting("threads", "N", "", "Threads that handle calls; as many as the machine has cores");
const MANY: usize = 1_000_000;

impl Resolve for Serve {
    fn settings() -> Vec<&'static Setting> {
        let own = [
            &STORE,
            &CREATE,
            &SAMPLE,
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
        ServerAccess::SETTINGS.into_iter().chain(own).chain(Telemetry::SETTINGS).collect()
    }

    /// Each value is read before the first missing one ends it, so that no fault hides another.
    fn resolve(values: &mut Values<'_>) -> Option<Self> {
        let access = ServerAccess::resolve(values);
        let (create, sample) = (values.switch(&CREATE), values.switch(&SAMPLE));
        let store = store(values, sample.unwrap_or_default());
        let cache_bytes = values.get(&CACHE, parse::cache_size);
        let hint_bytes = values.get(&HINTS, parse::size);
        let group_commit = values.get(&GROUP_COMMIT, parse::switch);
        let coalesce = values.get(&COALESCE, parse::switch);
        let lookup_cache_bytes = values.get(&LOOKUP_CACHE, parse::optional_cache_size);
        let [max_batch, max_identities] = [&MAX_BATCH, &MAX_IDENTITIES]
            .map(|setting| values.get(setting, parse::count(1..=MANY)));
        let [max_attributes, max_holds, max_merged] = [&MAX_ATTRIBUTES, &MAX_HOLDS, &MAX_MERGED]
            .map(|setting| values.get(setting, parse::count(0..=MANY)));
        let closed_tenants = values.get(&TENANTS, closed_tenants);
        let max_user_bytes = values.get(&MAX_USER_SIZE, parse::user_size);
        let call_timeout = values.get(&CALL_TIMEOUT, parse::positive);
        let [max_calls, max_connections] = [&MAX_CALLS, &MAX_CONNECTIONS]
            .map(|setting| values.get(setting, parse::count(1..=MANY)));
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

fn store(values: &mut Values<'_>, sample: bool) -> Option<StoreChoice> {
    if sample && !values.is_given(&STORE) {
        return Some(StoreChoice::Temporary);
    }
    values.get(&STORE, store::choice)
}

fn threads(text: &str) -> Result<usize, String> {
    if text.is_empty() {
        return Ok(std::thread::available_parallelism().map_or(1, usize::from));
    }
    parse::count(1..=1_024)(text)
}
