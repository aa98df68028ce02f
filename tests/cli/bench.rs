//! `polynym bench` in short runs: it measures, checks and loads. Speed is not asserted.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{assert_fails, json, stderr};
use crate::server::{Server, polynym, signal};

const QUICK: [&str; 6] = ["--warmup", "0.05", "--concurrency", "4", "--connections", "2"];

/// The seconds of attempts: on a busy machine no call may end in time.
const DURATIONS: [&str; 4] = ["0.8", "4", "20", "100"];

/// One caller, so that the machine has capacity left.
const LIGHT: [&str; 4] = ["--concurrency", "1", "--connections", "1"];

/// The response bytes after which calls are in progress: more than the setup of a connection takes.
const SETUP_BYTES: usize = 5_000;

/// A TCP proxy to a server that counts the response bytes.
struct Proxy {
    url: String,
    answered: Arc<AtomicUsize>,
}

impl Proxy {
    fn to(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            answered: Arc::default(),
        };
        let (address, answered) =
            (server.url.trim_start_matches("http://").to_owned(), proxy.answered.clone());
        std::thread::spawn(move || {
            for caller in listener.incoming().map(Result::unwrap) {
                let Ok(server) = TcpStream::connect(&address) else { continue };
                copy(caller.try_clone().unwrap(), server.try_clone().unwrap(), Arc::default());
                copy(server, caller, answered.clone());
            }
        });
        proxy
    }

    /// Waits until calls are in progress.
    fn wait_for_calls(&self) {
        let since = Instant::now();
        while self.answered.load(Ordering::Relaxed) < SETUP_BYTES {
            assert!(since.elapsed() < Duration::from_secs(60), "no calls in time");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Copies bytes until either side closes.
fn copy(mut from: TcpStream, mut to: TcpStream, count: Arc<AtomicUsize>) {
    to.set_nodelay(true).unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            count.fetch_add(length, Ordering::Relaxed);
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
    });
}

fn server() -> (Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().display());
    (Server::start(&["--store", &store]), folder)
}

/// Runs it for longer, until a call ends in time.
fn run(server: &Server, mode: &str, more: &[&str]) -> Output {
    let attempt = |duration| {
        let arguments = [&["bench", mode, "--json", "--duration", duration], &QUICK[..], more];
        server.run(&arguments.concat())
    };
    let is_measured = |output: &Output| !stderr(output).contains("no call succeeded");
    DURATIONS.into_iter().map(attempt).find(is_measured).expect("no call succeeded")
}

fn bench(server: &Server, mode: &str, more: &[&str]) -> Value {
    let mut objects = json(&run(server, mode, more));
    assert_eq!(objects.len(), 1);
    objects.remove(0)
}

fn number(report: &Value, key: &str) -> f64 {
    report[key].as_f64().unwrap_or_else(|| panic!("no {key} in {report}"))
}

#[test]
fn every_mode_measures_without_errors() {
    let (server, _folder) = server();
    for (mode, identifiers) in [
        ("health", 0.0),
        ("resolve", 1.0),
        ("batch", 20.0),
        ("find", 1.0),
        ("audit", 1.0),
        ("create", 3.0),
        ("link", 1.0),
    ] {
        let report = bench(&server, mode, &["--users", "150", "--batch", "20"]);
        let calls = number(&report, "calls_per_second");
        assert!(calls > 0.0, "{mode}: {report}");
        let expected = calls * identifiers;
        assert!(
            (number(&report, "identifiers_per_second") - expected).abs() <= identifiers,
            "{mode}: {report}"
        );
        let quantiles = ["p50_us", "p99_us", "p999_us"].map(|key| number(&report, key));
        assert!(quantiles[0] > 0.0 && quantiles.is_sorted(), "{mode}: {report}");
        assert_eq!(
            (number(&report, "errors"), number(&report, "wrong")),
            (0.0, 0.0),
            "{mode}: {report}"
        );
    }
}

#[test]
fn loaded_users_do_not_depend_on_their_number() {
    let (server, _folder) = server();
    let show = || {
        json(&server.run(&[
            "resolve",
            "--json",
            "--tenant",
            "bench",
            "handle:ada_0",
            "handle:alan_49",
        ]))
    };
    bench(&server, "resolve", &["--users", "50"]);
    let few = show();
    let output = server.run(&["resolve", "--tenant", "bench", "handle:barbara_50"]);
    assert_fails(&output, 1, &["nobody owns"]);

    bench(&server, "link", &["--users", "120"]);
    let ids = |users: &[Value]| {
        users.iter().map(|found| found["user"]["userId"].clone()).collect::<Vec<_>>()
    };
    let handles =
        |users: &[Value]| users.iter().map(|f| f["user"]["identities"].clone()).collect::<Vec<_>>();
    assert_eq!((ids(&few), handles(&few)), (ids(&show()), handles(&show())));
    assert!(server.run(&["resolve", "--tenant", "bench", "handle:barbara_50"]).status.success());
}

#[test]
fn the_loaded_flag_skips_loading() {
    let (server, _folder) = server();
    let run_loaded = |mode: &str| run(&server, mode, &["--loaded", "--users", "20"]);
    assert_fails(&run_loaded("resolve"), 1, &["answers were wrong: the users differ"]);
    assert!(run_loaded("link").status.success(), "link looks up the ids of its users");
    assert!(run_loaded("resolve").status.success());
}

#[test]
fn altered_users_are_detected() {
    let (server, _folder) = server();
    bench(&server, "resolve", &["--users", "20"]);
    let found =
        json(&server.run(&["resolve", "--json", "--tenant", "bench", "handle:ada_0"])).remove(0);
    let id = found["user"]["userId"].as_str().unwrap();
    json(&server.run(&["identity", "unlink", "--json", "--tenant", "bench", id, "handle:ada_0"]));
    let output = run(&server, "resolve", &["--users", "20"]);
    assert_fails(&output, 1, &["differs from"]);
}

#[test]
fn only_tenants_made_by_bench_are_written_and_removed() {
    let (server, _folder) = server();
    assert!(server.run(&["tenant", "set", "--tenant", "acme", "--create"]).status.success());
    for mode in ["resolve", "batch", "create", "link", "remove"] {
        let output = server.run(&["bench", mode, "--tenant", "acme", "--users", "10"]);
        assert_fails(&output, 2, &["acme", "was not created by `polynym bench`"]);
    }

    bench(&server, "resolve", &["--users", "250"]);
    let created = bench(&server, "create", &[]);
    assert!(number(&created, "calls_per_second") > 0.0);
    let resolve = ["resolve", "--tenant", "bench", "handle:ada_0"];
    assert!(server.run(&resolve).status.success());

    for _ in ["first", "again"] {
        assert_eq!(json(&server.run(&["bench", "remove", "--json"]))[0]["removed"], "bench");
        assert_fails(&server.run(&resolve), 1, &["there is no such tenant"]);
    }
    bench(&server, "resolve", &["--users", "20"]);
}

#[test]
fn wrong_answers_are_detected() {
    let (server, _folder) = server();
    bench(&server, "resolve", &["--users", "2"]);
    let update = ["user", "update", "--tenant", "bench", "handle:ada_0", "--name", "another name"];
    assert!(server.run(&update).status.success());

    let mut are_both = false;
    for duration in DURATIONS {
        let arguments = ["--users", "2", "--loaded", "--duration", duration, "--warmup", "0"];
        let output =
            server.run(&[&["bench", "resolve", "--json"], &arguments[..], &LIGHT].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        are_both = number(&report, "wrong") > 0.0 && number(&report, "calls_per_second") > 0.0;
        if are_both {
            assert_fails(&output, 1, &["answers were wrong"]);
            break;
        }
    }
    assert!(are_both, "a second user is as it was");
}

#[test]
fn failed_calls_fail_the_command() {
    let (server, _folder) = server();
    let proxy = Proxy::to(&server);
    let arguments = ["bench", "health", "--json", "--duration", "8", "--warmup", "0"];
    let output = std::thread::scope(|scope| {
        let measuring = scope
            .spawn(|| server.run(&[&arguments[..], &LIGHT, &["--server", &proxy.url]].concat()));
        proxy.wait_for_calls();
        server.signal("KILL");
        measuring.join().unwrap()
    });
    assert_fails(&output, 1, &["calls failed", "errors, the first: "]);

    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(number(&report, "errors") > 0.0, "{report}");
}

#[test]
fn ctrl_c_prints_the_measurements_so_far() {
    let (server, _folder) = server();
    let proxy = Proxy::to(&server);
    let arguments =
        ["bench", "health", "--json", "--duration", "600", "--warmup", "0", "--server", &proxy.url];
    let bench = polynym(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    proxy.wait_for_calls();
    signal(bench.id(), "INT");

    let output = bench.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        number(&report, "calls_per_second") > 0.0 && number(&report, "errors") == 0.0,
        "{report}"
    );
}
