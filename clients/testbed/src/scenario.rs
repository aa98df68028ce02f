//! The file of scenarios, `clients/scenarios.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::proxy::Fault;
use crate::{Outcome, context};

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Notes for readers of the file.
    #[serde(rename = "about")]
    _about: Value,
    pub mutations: Mutations,
    pub scenarios: Vec<Scenario>,
}

impl File {
    /// Reads the file.
    pub fn read(path: &Path) -> Outcome<Self> {
        let text = std::fs::read_to_string(path).map_err(context(&path.display().to_string()))?;
        serde_json::from_str(&text).map_err(context(&path.display().to_string()))
    }
}

/// Steps in a tenant of their own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub name: String,
    /// Whether it is for clients that are closed, not dropped.
    #[serde(default)]
    pub closes: bool,
    /// Whether it has steps that must be taken within a second, which a busy machine may miss: it
    /// passes if one of several attempts does.
    #[serde(default)]
    pub timed: bool,
    pub steps: Vec<Step>,
}

/// Every mutation meets every fault, in a tenant of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutations {
    pub faults: Vec<Fault>,
    pub cases: Vec<Mutation>,
}

/// One mutation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutation {
    pub method: String,
    /// The steps before the call.
    #[serde(default)]
    pub before: Vec<Step>,
    pub request: Value,
    #[serde(default)]
    pub save: Saved,
    /// The steps that check that it happened once.
    pub after: Vec<Step>,
}

/// Names of variables with the paths of their values in an answer.
pub type Saved = BTreeMap<String, String>;

/// One step.
#[derive(Clone, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// A new client. Each scenario begins with one for `admin`.
    Connect { caller: Option<String>, token: Option<String>, batching: Option<bool> },
    /// A unary call of the client.
    Call {
        method: String,
        request: Value,
        timeout_ms: Option<u64>,
        answer: Option<Value>,
        error: Option<ExpectedError>,
        #[serde(default)]
        save: Saved,
    },
    /// `resolve` of the client, `times` one after another. With `within_ms`, it is repeated after a
    /// deadline or a lost connection, and must be answered within this time.
    Resolve {
        request: Value,
        times: Option<usize>,
        timeout_ms: Option<u64>,
        within_ms: Option<u64>,
        error: Option<ExpectedError>,
    },
    /// `get_or_create` of the client, by so many callers at once: all get one user, and one of them
    /// has created it if `creates`.
    GetOrCreate { request: Value, concurrency: usize, creates: bool, save: Saved },
    /// Many of them at once. Those with a time of their own expire.
    ResolveConcurrently { requests: Value, timeouts_ms: Option<Value>, found: usize },
    /// `resolve_many` of the client.
    ResolveMany { request: Value, found: usize },
    /// All users of a search.
    Search { request: Value, count: usize, error: Option<ExpectedError> },
    /// All events of a user.
    History { request: Value, count: usize, error: Option<ExpectedError> },
    /// Begins a watch.
    Watch { request: Value, error: Option<ExpectedError> },
    /// Ends the watch, once it has seen these events: pairs of user and type. It must see them
    /// within `within_ms`, by default a minute.
    Watched { events: Vec<(String, String)>, within_ms: Option<u64> },
    /// A call of the testbed itself, as `admin`, past the proxy.
    Direct {
        method: String,
        request: Value,
        caller: Option<String>,
        answer: Option<Value>,
        #[serde(default)]
        save: Saved,
    },
    /// The testbed creates a user for each of these.
    Load { users: Value },
    /// Closes the client.
    Close {},
    /// Two further servers that have these users are restarted one after the other, while the
    /// client, which knows both, looks a user up without a pause. No look-up may fail.
    RollingRestart { users: Value, request: Value },
    /// The faults of the next calls, one each, the whole list `times`.
    Faults { faults: Vec<Fault>, times: Option<usize> },
    /// The connections end, and new ones are refused for this time; for good without it.
    Outage { for_ms: Option<u64> },
    /// The server is killed, and started again on its store.
    Restart {},
    /// The connections that are open go silent: they forward nothing more and do not end.
    Freeze {},
    /// The number of calls that the client has sent since the last such step.
    Calls { at_least: Option<u64>, at_most: u64 },
    /// The types of all events in the history of a user.
    Happened { user: String, events: Vec<String> },
    /// The types of all events in the history of the tenant.
    TenantHappened { events: Vec<String> },
    /// The number of users in the tenant.
    Users { count: usize },
    /// The number of bulk changes in the tenant.
    BulkChanges { count: usize },
}

/// An error as a client reports it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedError {
    /// The type in the client.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its reason; none if the transport failed.
    pub reason: Option<String>,
    /// The field that is named.
    pub field: Option<String>,
    /// The owner that is named.
    pub owner: Option<String>,
    /// Whether it has a delay.
    #[serde(default)]
    pub retry_after: bool,
    /// The variable for its request id, which it must have.
    pub save_request_id: Option<String>,
}
