//! The server on a replica set of one member, beside a program that uses MongoDB's driver.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::Fallible;
use crate::Options;
use crate::driver::{Driver, Lookup};
use crate::machine::output;
use crate::process::{Process, Server, free_port};
use crate::run::{CONCURRENCIES, LOW_CONCURRENCIES, Run};

const USERS: u64 = 200_000;
/// The time of the batches that fill the table of owner hints before the measurements.
const WARM_SECONDS: f64 = 15.0;

pub fn run(options: &Options, polynym: &Path, program: &Path) -> Fallible<()> {
    let mut run = Run::new("mongodb", options, polynym, USERS)?;
    let port = free_port()?;
    let mongod = start_mongod(&run, program, port, options.mongodb_cache)?;
    let runtime = Runtime::new()?;
    let driver = runtime.block_on(Driver::initiate(port, run.settings.users))?;

    let store = format!("mongodb://127.0.0.1:{port}/polynym");
    output(&mut run.polynym(&["store", "init", "--store", &store]))?;
    let servers = Servers {
        default: run.serve(&store, &[])?,
        without_hints: run.serve(&store, &["--hints", "0"])?,
        one_by_one: run.serve(&store, &["--hints", "0", "--coalesce", "off"])?,
    };
    eprintln!("mongodb: loading {} users", run.settings.users);
    run.load(&servers.default)?;
    output(&mut run.bench_command(&servers.default, "batch", 16, WARM_SECONDS))?;

    for round in 1..=run.settings.rounds {
        eprintln!("mongodb: look-ups, round {round}");
        for concurrency in CONCURRENCIES {
            measure_lookups(&mut run, &servers, &mongod, concurrency)?;
            for lookup in [Lookup::TwoFinds, Lookup::Join] {
                let duration = Duration::from_secs_f64(run.settings.duration_seconds);
                let warmup = Duration::from_secs_f64(run.settings.warmup_seconds);
                let calls = driver.measure(lookup, concurrency, warmup, duration);
                let sample = runtime.block_on(calls)?;
                run.note_calls(lookup.subject(), concurrency, sample.per_second);
                run.note(lookup.subject(), "p99", "µs", concurrency, sample.p99_us);
            }
        }
    }
    for round in 1..=run.settings.rounds {
        eprintln!("mongodb: writes, round {round}");
        for concurrency in LOW_CONCURRENCIES {
            for mode in ["create", "link"] {
                run.measure(&servers.default, mode, mode, concurrency)?;
            }
        }
    }

    let version = runtime.block_on(driver.version())?;
    run.finish(Some(format!("mongod {version}")))
}

/// Servers on the same database.
struct Servers {
    default: Server,
    without_hints: Server,
    one_by_one: Server,
}

fn start_mongod(run: &Run, program: &Path, port: u16, cache: f64) -> Fallible<Process> {
    let data = run.folder().join("mongod");
    std::fs::create_dir(&data)?;
    let mut command = Command::new(program);
    command.args(["--replSet", "rs0", "--bind_ip", "127.0.0.1", "--quiet"]);
    command.args(["--port", &port.to_string(), "--wiredTigerCacheSizeGB", &cache.to_string()]);
    command.args(["--setParameter", "diagnosticDataCollectionEnabled=false"]);
    Process::start(command.arg("--dbpath").arg(data).stdout(Stdio::null()))
}

fn measure_lookups(
    run: &mut Run,
    servers: &Servers,
    mongod: &Process,
    concurrency: usize,
) -> Fallible<()> {
    let Servers { default, without_hints, one_by_one } = servers;
    run.measure(default, "health", "health", concurrency)?;
    let resolves = [
        (default, "resolve"),
        (without_hints, "resolve, no hints"),
        (one_by_one, "resolve, no hints, one by one"),
    ];
    for (server, subject) in resolves {
        let before = mongod.cpu_us()?;
        let report = run.measure(server, subject, "resolve", concurrency)?;
        let seconds = run.settings.duration_seconds + run.settings.warmup_seconds;
        let cpu_us = (mongod.cpu_us()? - before) / (report.calls_per_second * seconds);
        run.note(subject, "mongod time", "µs", concurrency, cpu_us);
    }
    run.measure(default, "batch", "batch", concurrency).map(drop)
}
