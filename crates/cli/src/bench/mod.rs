//! `polynym bench`: loads a running server with calls, checks every answer, and reports rates and
//! latencies.
//!
//! Most measurements run the client on the server's machine, so the client is cheap: one thread,
//! since the server needs the other cores; messages that decode only the checked fields; no timer,
//! lock or hash map for each call. `health` runs the same loop around a call that does nothing,
//! which is the upper bound.

mod audit;
mod bench_tenant;
mod caller;
mod change;
mod find;
mod load;
mod message;
mod numbered_user;
mod report;
mod run;
mod targets;
mod work;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tonic::Status;

use super::client::Session;
use super::client::connection;
use super::failure::Failure;
use super::output;
use crate::config::{Bench, Flags, Purpose};
use audit::Audit;
use caller::Caller;
use change::{Create, Link};
use find::Find;
use polynym_client::Client;
use report::Report;
use run::{Tally, Window};
use targets::Targets;
use work::{Batch, Health, Resolve, SharedResolve, Work};

pub const EXAMPLES: &str = "\
Examples:
  polynym bench resolve --users 100000 --concurrency 64 --duration 10
  polynym bench health --concurrency 64 --json
  polynym bench remove

`resolve`, `batch`, `find`, `audit` and `link` first load the users that are missing. The users of
`create` stay; `link` unlinks what it links. All users are in a tenant that this command creates; it
writes to no other tenant. `remove` deletes it.";

#[derive(Args)]
pub struct Run {
    /// The kind of calls.
    mode: Mode,
    #[command(flatten)]
    settings: Flags<Bench>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// Look up one identifier per call.
    Resolve,
    /// Look up many identifiers per call.
    Batch,
    /// Find users by names, by starts of addresses, by pasted addresses, and with a wrong letter.
    Find,
    /// List the newest changes of all users.
    Audit,
    /// Register new users.
    Create,
    /// Link new identifiers to users, and unlink them, in turn.
    Link,
    /// Check the server's health: a call that does nothing.
    Health,
    /// Delete the tenant of the other modes, with all of its users.
    Remove,
}

impl Mode {
    /// The number of items in one call.
    const fn items(self, batch: usize) -> usize {
        match self {
            Self::Health | Self::Remove => 0,
            Self::Resolve | Self::Find | Self::Audit | Self::Link => 1,
            Self::Batch => batch,
            Self::Create => numbered_user::KINDS,
        }
    }
}

pub async fn run(command: Run) -> Result<(), Failure> {
    let settings = command.settings.load()?;
    let clients = connect(&settings).await?;
    let (users, step) = (settings.users as u64, settings.concurrency as u64);
    let tenant = Arc::<str>::from(settings.client.tenant.as_str());
    let caller =
        |n: usize| Caller::new(clients[n % clients.len()].clone(), tenant.clone(), n as u64);
    // If another program answers, report it once and measure nothing.
    let first = timeout(settings.client.caller.timeout, Health(caller(0)).call()).await;
    first.unwrap_or_else(|late| Err(Status::deadline_exceeded(late.to_string())))?;
    let session = Session::new(clients[0].clone(), settings.client.clone());
    if matches!(command.mode, Mode::Remove) {
        return remove(&session).await;
    }

    let is_read = matches!(command.mode, Mode::Resolve | Mode::Batch | Mode::Find | Mode::Audit);
    let writes = matches!(command.mode, Mode::Create | Mode::Link) || is_read && !settings.loaded;
    if writes {
        bench_tenant::claim(&session).await?;
    }

    if is_read && !settings.loaded {
        load::ensure(users, &caller).await?;
    }
    let targets = Arc::new(Targets::new(&settings));
    let (tally, measured) = match command.mode {
        Mode::Health | Mode::Remove => measure(&settings, |n| Health(caller(n))).await,
        Mode::Create => {
            let run = numbered_user::new_run();
            measure(&settings, |n| Create::new(caller(n), run + n as u64, step)).await
        }
        Mode::Resolve if settings.batching => {
            measure(&settings, |n| SharedResolve::new(caller(n), targets.clone())).await
        }
        Mode::Resolve => measure(&settings, |n| Resolve::new(caller(n), targets.clone())).await,
        Mode::Batch => {
            measure(&settings, |n| Batch::new(caller(n), targets.clone(), settings.batch)).await
        }
        Mode::Find => measure(&settings, |n| Find::new(caller(n), targets.clone())).await,
        Mode::Audit => measure(&settings, |n| Audit(caller(n))).await,
        Mode::Link => {
            let ids = Arc::new(load::ensure(users, &caller).await?);
            let run = numbered_user::new_run();
            measure(&settings, |n| Link::new(caller(n), ids.clone(), run + n as u64, step)).await
        }
    };
    let per_call = command.mode.items(settings.batch);
    Report::new(&tally, per_call, measured).print(settings.client.output)?;
    let verdict = tally.verdict();

    if measured < settings.duration { Err(Failure::Interrupted) } else { verdict }
}

async fn remove(session: &Session) -> Result<(), Failure> {
    bench_tenant::remove(session).await?;
    match session.json() {
        true => output::print_json(&serde_json::json!({ "removed": session.tenant() })),
        false => output::print(&format!("the tenant {} is gone\n", session.tenant())),
    }
}

async fn connect(settings: &Bench) -> Result<Vec<Client>, Failure> {
    let mut clients = Vec::new();
    for _ in 0..settings.connections {
        clients.push(connection::connect(&settings.client, &Purpose::default()).await?);
    }
    Ok(clients)
}

/// Runs the configured number of callers. Returns their results and the measured time, which Ctrl-C
/// shortens.
async fn measure<W: Work>(settings: &Bench, work: impl Fn(usize) -> W) -> (Tally, Duration) {
    let start = Instant::now() + settings.warmup;
    let window =
        Window { start, end: start + settings.duration, grace: settings.client.caller.timeout };
    let call = |n| {
        let (stop, stopped) = oneshot::channel();
        (stop, tokio::spawn(run::call(work(n), window, stopped)))
    };
    let (stops, callers): (Vec<_>, Vec<_>) = (0..settings.concurrency).map(call).unzip();
    let mut callers = pin!(gather(callers));

    tokio::select! {
        tally = &mut callers => (tally, settings.duration),
        _ = tokio::signal::ctrl_c() => {
            let measured = start.elapsed().min(settings.duration);
            drop(stops);
            (callers.await, measured)
        }
    }
}

async fn gather(callers: Vec<JoinHandle<Tally>>) -> Tally {
    let mut total = Tally::default();
    for caller in callers {
        match caller.await {
            Ok(tally) => total.add(tally),
            Err(error) => total.fail(&error.to_string()),
        }
    }
    total
}
