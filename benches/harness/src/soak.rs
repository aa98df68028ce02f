//! Soaks: servers under mixed load for a long time, while they and their shards go down.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use testkit::mongo::{Layout, Sharded};
use testkit::soak::{self, Calls, Plan, Report, Store, Usage};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::Fallible;
use crate::machine::{self, Machine, output};
use crate::results::{Figure, Results, Settings};
use crate::root;
use crate::suites;

/// The shards of the cluster, and the time between two samples.
const SHARDS: usize = 3;
const INTERVAL: Duration = Duration::from_secs(5);
/// The callers, and the users of each.
const CALLERS: usize = 16;
const USERS: usize = 100;

/// The length of a soak, and the program that serves.
#[derive(clap::Args)]
pub struct Options {
    /// Seconds in all: half on the embedded store, half on three shards
    #[arg(value_name = "SECONDS", default_value_t = 1200)]
    #[arg(value_parser = clap::value_parser!(u64).range(20..))]
    seconds: u64,
    /// The profile of Cargo that polynym is built with
    #[arg(long, value_name = "NAME", default_value = "dist")]
    profile: String,
    /// A polynym that is built already
    #[arg(long, value_name = "FILE")]
    polynym: Option<PathBuf>,
}

/// Runs a soak on each store, and writes the figures. Fails if something is wrong or not flat.
pub fn run(options: &Options) -> Fallible<()> {
    let polynym = suites::polynym(options.polynym.as_deref(), &options.profile)?;
    let runtime = Runtime::new()?;
    let mut faults = Vec::new();
    for suite in ["soak-embedded", "soak-mongodb"] {
        eprintln!("{suite}: {} s", options.seconds / 2);
        let load_before = machine::load_average()?;
        let report = runtime.block_on(async {
            tokio::select! {
                report = soak(suite, options, &polynym) => Ok(report),
                interrupted = interruption() => interrupted,
            }
        })?;
        let found = report.faults.iter().cloned().chain(report.rising());
        for fault in found {
            eprintln!("{suite}: {fault}");
            faults.push(format!("{suite}: {fault}"));
        }
        save(suite, options, &polynym, load_before, &report)?;
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n").into()) }
}

/// Fails at Ctrl-C or SIGTERM: the servers of a soak end when it is dropped.
async fn interruption<T>() -> io::Result<T> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Err(ErrorKind::Interrupted.into())
}

async fn soak(suite: &str, options: &Options, polynym: &Path) -> Report {
    let plan = Plan {
        program: polynym.to_owned(),
        length: Duration::from_secs(options.seconds / 2),
        interval: INTERVAL.min(Duration::from_secs(options.seconds / 20)),
        callers: CALLERS,
        users: USERS,
    };
    let store = match suite {
        "soak-embedded" => Store::Embedded,
        _ => {
            let cluster = Sharded::start(SHARDS, Layout::default()).await;
            Store::Cluster(Arc::new(cluster), "polynym".to_owned())
        }
    };
    soak::run(&plan, store).await
}

fn save(
    suite: &str,
    options: &Options,
    polynym: &Path,
    load_before: f64,
    report: &Report,
) -> Fallible<()> {
    let (commit, modified) = machine::commit(&root())?;
    let results = Results {
        suite: suite.to_owned(),
        command: format!("scripts/soak {}", options.seconds),
        commit,
        modified,
        date: machine::date()?,
        machine: Machine::this()?,
        load_average: [load_before, machine::load_average()?],
        versions: vec![
            output(Command::new(polynym).arg("--version"))?,
            output(Command::new("rustc").arg("--version"))?,
        ],
        settings: Settings {
            users: (CALLERS * USERS) as u64,
            rounds: report.samples.len(),
            duration_seconds: (options.seconds / 2) as f64,
            warmup_seconds: 0.0,
            profile: options.profile.clone(),
        },
        figures: figures(report),
    };
    results.save(&root())
}

/// Returns a figure with a value of each sample; 0 of a server that was down.
fn figures(report: &Report) -> Vec<Figure> {
    let figure = |subject: &str, metric: &str, unit: &str, rounds: Vec<f64>| Figure {
        subject: subject.to_owned(),
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        concurrency: 0,
        rounds: rounds.into_iter().map(|value| (value * 1e3).round() / 1e3).collect(),
    };
    let samples = &report.samples;
    let times = samples.iter().map(|sample| sample.seconds).collect();
    let mut figures = vec![figure("sample", "time", "s", times)];

    let count = samples.first().map_or(0, |sample| sample.servers.len());
    for n in 0..count {
        let of = |value: fn(&Usage) -> f64| {
            let usages = samples.iter().map(|sample| sample.servers[n].as_ref());
            usages.map(|usage| usage.map_or(0.0, value)).collect()
        };
        let subject = format!("server {}", n + 1);
        figures.push(figure(&subject, "memory", "MiB", of(|usage| usage.memory_mib)));
        figures.push(figure(&subject, "descriptors", "open", of(|usage| usage.descriptors)));
        figures.push(figure(&subject, "threads", "threads", of(|usage| usage.threads)));
    }

    let of = |value: fn(&Calls) -> f64| samples.iter().map(|sample| value(&sample.calls)).collect();
    figures.push(figure("look-up", "p50", "µs", of(|calls| calls.p50_us.into())));
    figures.push(figure("look-up", "p99", "µs", of(|calls| calls.p99_us.into())));
    figures.push(figure("look-up", "calls", "calls", of(|calls| calls.look_ups as f64)));
    figures.push(figure("change", "calls", "calls", of(|calls| calls.changes as f64)));
    figures.push(figure("event", "events", "events", of(|calls| calls.events as f64)));
    figures.push(figure("call", "failures", "calls", of(|calls| calls.failures as f64)));

    for (kind, _) in BLOWS {
        let own = report.blows.iter().filter(|(_, blow)| blow.contains(kind));
        figures.push(figure(kind, "times", "s", own.map(|(seconds, _)| *seconds).collect()));
    }
    figures
}

/// The kinds of blows: a part of the name of each, and a title.
pub const BLOWS: [(&str, &str); 3] = [
    ("kill -9", "`kill -9` of a server"),
    ("SIGTERM", "SIGTERM to a server"),
    ("shard", "a shard stopped"),
];
