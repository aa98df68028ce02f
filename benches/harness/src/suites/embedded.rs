//! The server on the embedded store.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::Fallible;
use crate::Options;
use crate::machine::output;
use crate::process::{Process, Server};
use crate::run::{CONCURRENCIES, Run};

const USERS: u64 = 1_000_000;
/// Sizes of the store's cache.
const CACHES: [&str; 3] = ["16MiB", "256MiB", "1536MiB"];
/// A user that `polynym bench` loads.
const LOADED: &str = "email:ada.allen.0@example.com";

pub fn run(options: &Options, polynym: &Path) -> Fallible<()> {
    let mut run = Run::new("embedded", options, polynym, USERS)?;
    let folder = run.folder().join("store");
    let store = format!("embedded:{}", folder.display());

    load(&mut run, &store, &folder)?;
    measure_reads(&mut run, &store)?;
    measure_caches(&mut run, &store)?;
    measure_creates(&mut run, &store)?;
    measure_starts(&mut run, &store)?;
    run.finish(None)
}

fn load(run: &mut Run, store: &str, folder: &Path) -> Fallible<()> {
    eprintln!("embedded: loading {} users", run.settings.users);
    let start = Instant::now();
    let mut server = run.serve(store, &[])?;
    run.load(&server)?;
    run.note("load", "time", "s", 0, start.elapsed().as_secs_f64());
    server.process.stop("TERM")?;

    let mut bytes = 0;
    for file in std::fs::read_dir(folder)? {
        bytes += file?.metadata()?.len();
    }
    run.note("store", "size", "MiB", 0, bytes as f64 / f64::from(1 << 20));
    Ok(())
}

fn measure_reads(run: &mut Run, store: &str) -> Fallible<()> {
    let server = run.serve(store, &[])?;
    run.load(&server)?;
    for round in 1..=run.settings.rounds {
        eprintln!("embedded: reads, round {round}");
        for concurrency in CONCURRENCIES {
            for mode in ["health", "resolve", "batch"] {
                run.measure(&server, mode, mode, concurrency)?;
            }
        }
    }
    Ok(())
}

/// Measures speed and memory with less and with more cache than the store has pages.
fn measure_caches(run: &mut Run, store: &str) -> Fallible<()> {
    for cache in CACHES {
        eprintln!("embedded: a cache of {cache}");
        let subject = format!("cache {cache}");
        let server = run.serve(store, &["--cache", cache])?;
        run.load(&server)?;
        for _ in 0..run.settings.rounds {
            run.measure(&server, &subject, "resolve", 64)?;
        }
        run.note(&subject, "resident memory", "MiB", 0, server.process.memory_mib()?);
    }
    Ok(())
}

fn measure_creates(run: &mut Run, store: &str) -> Fallible<()> {
    for round in 1..=run.settings.rounds {
        eprintln!("embedded: creates, round {round}");
        for (subject, group_commit) in [("create", "on"), ("create, one a sync", "off")] {
            let server = run.serve(store, &["--group-commit", group_commit])?;
            for concurrency in CONCURRENCIES {
                run.measure(&server, subject, "create", concurrency)?;
            }
        }
    }
    Ok(())
}

fn measure_starts(run: &mut Run, store: &str) -> Fallible<()> {
    for round in 1..=run.settings.rounds {
        eprintln!("embedded: starts, round {round}");
        let mut server = run.serve(store, &[])?;
        server.process.stop("TERM")?;
        let mut server = measure_start(run, store, "start after a clean end")?;
        kill_while_writing(run, &mut server)?;
        measure_start(run, store, "start after kill -9")?;
    }
    Ok(())
}

fn measure_start(run: &mut Run, store: &str, subject: &str) -> Fallible<Server> {
    let server = run.serve(store, &[])?;
    let resolve = ["resolve", "--server", &server.url, "--tenant", "bench", LOADED];
    output(&mut run.polynym(&resolve))?;
    let answered = server.started.elapsed();
    run.note(subject, "listening", "s", 0, server.listening.as_secs_f64());
    run.note(subject, "first answer", "s", 0, answered.as_secs_f64());
    Ok(server)
}

fn kill_while_writing(run: &Run, server: &mut Server) -> Fallible<()> {
    let mut command = run.bench_command(server, "create", 64, 30.0);
    let _client = Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()))?;
    std::thread::sleep(Duration::from_secs(1));
    server.process.stop("KILL")
}
