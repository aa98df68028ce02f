//! Runs all scenarios.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Outcome;
use crate::api::{self, Api};
use crate::direct::Direct;
use crate::matrix;
use crate::proxy::Proxy;
use crate::puppet::Puppet;
use crate::scenario::{File, Scenario, Step};
use crate::server::{self, Server};
use crate::value::Variables;

/// The deadline of the client's calls: long enough for a busy machine.
const CLIENT_TIMEOUT_MS: u64 = 60_000;
/// The attempts at a timed scenario.
const ATTEMPTS: usize = 5;

/// The settings of a run.
pub struct Options {
    /// Only scenarios with this in their names.
    pub only: String,
    /// The file of scenarios.
    pub scenarios: PathBuf,
    /// The program `polynym`; by default that of `POLYNYM_BIN`, or of the folder of this build.
    pub program: Option<PathBuf>,
    /// Whether every mutation meets every fault, not only some.
    pub every_fault: bool,
    /// Whether the client is dropped, not closed: scenarios about closing are skipped.
    pub without_close: bool,
}

impl Default for Options {
    fn default() -> Self {
        let scenarios = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios.json").into();
        let only = String::new();
        Self { only, scenarios, program: None, every_fault: false, without_close: false }
    }
}

/// The result of a run.
#[derive(Default)]
pub struct Report {
    /// The number of scenarios that ran.
    pub passed: usize,
    /// The names of those that failed, with their reasons.
    pub failures: Vec<(String, String)>,
    /// The names of those that were skipped: they are not for this client.
    pub skipped: Vec<String>,
    /// The time of each scenario.
    pub times: Vec<(Duration, String)>,
    seconds: f64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in &self.skipped {
            writeln!(f, "skipped: {name}")?;
        }
        for (name, reason) in &self.failures {
            writeln!(f, "failed: {name}\n  {reason}")?;
        }
        let (passed, failed) = (self.passed, self.failures.len());
        write!(f, "{passed} scenarios passed, {failed} failed, in {:.1} s", self.seconds)
    }
}

/// Runs the scenarios against a client.
pub async fn run(puppet: &mut impl Puppet, options: Options) -> Outcome<Report> {
    let file = File::read(&options.scenarios)?;
    let start = Instant::now();
    let program = options.program.map_or_else(server::program, Ok)?;
    let mut runner = Runner::new(puppet, Server::start(program).await?).await?;
    matrix::check(&file.mutations, &runner.api)?;
    runner.warm_up().await?;

    let mut report = Report::default();
    let scenarios = matrix::scenarios(&file.mutations, options.every_fault);
    let scenarios = scenarios.into_iter().chain(file.scenarios);
    for scenario in scenarios.filter(|scenario| scenario.name.contains(&options.only)) {
        if scenario.closes && options.without_close {
            report.skipped.push(scenario.name);
            continue;
        }
        let begin = Instant::now();
        match runner.attempt(&scenario).await {
            Ok(()) => report.passed += 1,
            Err(reason) => report.failures.push((scenario.name.clone(), reason)),
        }
        report.times.push((begin.elapsed(), scenario.name));
    }
    report.seconds = start.elapsed().as_secs_f64();
    if report.passed + report.failures.len() == 0 {
        return Err(format!("no scenario has {} in its name", options.only));
    }
    Ok(report)
}

/// A client, the server, and what the current scenario has saved.
pub struct Runner<'a, P> {
    puppet: &'a mut P,
    /// The descriptors.
    pub api: Api,
    /// The server.
    pub server: Server,
    /// The proxy before it.
    pub proxy: Proxy,
    /// The variables; `$tenant` is the tenant of the scenario.
    pub variables: Variables,
    /// The tenant of the scenario.
    pub tenant: String,
    /// The caller whom the client is connected as.
    pub caller: String,
    scenarios: u64,
    steps: u64,
}

impl<'a, P: Puppet> Runner<'a, P> {
    async fn new(puppet: &'a mut P, server: Server) -> Outcome<Self> {
        let proxy = Proxy::start().await?;
        proxy.set_upstream(&server.address);
        Ok(Self {
            puppet,
            api: Api::new()?,
            server,
            proxy,
            variables: Variables::default(),
            tenant: String::new(),
            caller: String::new(),
            scenarios: 0,
            steps: 0,
        })
    }

    /// Lets the server load its phone metadata, which takes a while.
    async fn warm_up(&self) -> Outcome<()> {
        let method = self.api.method("DirectoryService/NormalizeIdentity")?;
        let request = json!({ "identifier": { "phone": { "number": "+14155552671" } } });
        let request = api::parse(method.input(), &request)?;
        self.direct("admin")?.succeed(&method, &request).await.map(drop)
    }

    /// Runs a scenario; a timed one until it passes, at most [`ATTEMPTS`] times.
    async fn attempt(&mut self, scenario: &Scenario) -> Outcome<()> {
        let attempts = if scenario.timed { ATTEMPTS } else { 1 };
        for _ in 1..attempts {
            if self.scenario(&scenario.steps).await.is_ok() {
                return Ok(());
            }
        }
        self.scenario(&scenario.steps).await
    }

    /// Runs steps in a new tenant, with a new client of the caller `admin`.
    async fn scenario(&mut self, steps: &[Step]) -> Outcome<()> {
        self.scenarios += 1;
        self.tenant = format!("scenario-{}", self.scenarios);
        self.variables = Variables::default();
        self.variables.set("tenant", self.tenant.clone().into());
        self.proxy.set_faults(&[]);
        self.proxy.end_frozen();
        self.proxy.end_outage().await?;
        self.connect("admin", None, true).await?;

        for (number, step) in steps.iter().enumerate() {
            let outcome = self.step(step).await;
            outcome.map_err(|reason| format!("step {}: {reason}", number + 1))?;
        }
        match self.proxy.take_faults() {
            left if left.is_empty() => Ok(()),
            left => Err(format!("no call has met the faults {left:?}")),
        }
    }

    /// Connects the client through the proxy, with the tenant of the scenario as its default.
    pub async fn connect(
        &mut self,
        caller: &str,
        token: Option<&str>,
        batching: bool,
    ) -> Outcome<()> {
        caller.clone_into(&mut self.caller);
        let token = match token {
            Some(token) => token.to_owned(),
            None => self.server.token(caller)?.to_owned(),
        };
        let server = self.proxy.address.clone();
        self.connect_to(&server, &token, CLIENT_TIMEOUT_MS, batching).await?;
        self.proxy.take_calls();
        Ok(())
    }

    /// Connects the client to servers, separated by commas.
    pub async fn connect_to(
        &mut self,
        servers: &str,
        token: &str,
        timeout_ms: u64,
        batching: bool,
    ) -> Outcome<()> {
        let step = json!({
            "op": "connect", "server": servers, "token": token, "tenant": self.tenant,
            "timeout_ms": timeout_ms, "batching": batching,
        });
        self.ask(step).await.map(drop)
    }

    /// Sends a step to the client, and returns its answer.
    pub async fn ask(&mut self, mut step: Value) -> Outcome<Value> {
        self.steps += 1;
        step["id"] = self.steps.into();
        self.puppet.take(step).await
    }

    /// The testbed's own connection as a caller.
    pub fn direct(&self, caller: &str) -> Outcome<Direct> {
        // The calls of the caller `limited` are counted.
        let caller = if caller == "limited" { "registrar" } else { caller };
        Direct::new(&self.server.address, self.server.token(caller)?)
    }
}
