//! `polynym bench`, for a second each: that it measures, checks and loads, not how fast.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{assert_fails, json};
use crate::server::{Server, polynym};

const QUICK: [&str; 8] = ["--duration", "1.2", "--warmup", "0.1", "--concurrency", "8", "--connections", "2"];

fn server() -> (Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().display());
    (Server::start(&["--store", &store]), folder)
}

fn bench(server: &Server, mode: &str, more: &[&str]) -> Value {
    let mut objects = json(&server.run(&[&["bench", mode, "--json"], &QUICK[..], more].concat()));
    assert_eq!(objects.len(), 1);
    objects.remove(0)
}

fn number(report: &Value, key: &str) -> f64 {
    report[key].as_f64().unwrap_or_else(|| panic!("no {key} in {report}"))
}

#[test]
fn every_mode_measures_and_finds_nothing_wrong() {
    let (server, _folder) = server();
    for (mode, identifiers) in [("health", 0.0), ("resolve", 1.0), ("batch", 20.0), ("create", 3.0), ("link", 1.0)] {
        let report = bench(&server, mode, &["--users", "150", "--batch", "20"]);
        let calls = number(&report, "calls_per_second");
        assert!(calls > 0.0, "{mode}: {report}");
        let expected = calls * identifiers;
        assert!((number(&report, "identifiers_per_second") - expected).abs() <= identifiers, "{mode}: {report}");
        let quantiles = ["p50_us", "p99_us", "p999_us"].map(|key| number(&report, key));
        assert!(quantiles[0] > 0.0 && quantiles.is_sorted(), "{mode}: {report}");
        assert_eq!((number(&report, "errors"), number(&report, "wrong")), (0.0, 0.0), "{mode}: {report}");
    }
}

#[test]
fn what_is_loaded_is_the_same_for_all_numbers_and_left_alone() {
    let (server, _folder) = server();
    let show = || json(&server.run(&["resolve", "--json", "handle:ada_0", "handle:alan_49"]));
    bench(&server, "resolve", &["--users", "50"]);
    let few = show();
    let nobody = server.run(&["resolve", "handle:barbara_50"]);
    assert_fails(&nobody, 1, &["nobody owns"]);
    bench(&server, "link", &["--users", "120"]);
    let ids = |users: &[Value]| users.iter().map(|found| found["user"]["userId"].clone()).collect::<Vec<_>>();
    let handles = |users: &[Value]| users.iter().map(|f| f["user"]["identities"].clone()).collect::<Vec<_>>();
    assert_eq!((ids(&few), handles(&few)), (ids(&show()), handles(&show())));
    assert!(server.run(&["resolve", "handle:barbara_50"]).status.success());
}

#[test]
fn told_that_users_are_there_it_does_not_load_them() {
    let (server, _folder) = server();
    let told = |mode: &str| server.run(&[&["bench", mode, "--loaded", "--users", "20"], &QUICK[..]].concat());
    assert_fails(&told("resolve"), 1, &["answers were wrong: the users are not there"]);
    assert!(told("link").status.success(), "links are of users whose ids it looks for");
    assert!(told("resolve").status.success());
}

#[test]
fn users_that_are_not_as_they_were_loaded_are_found_out() {
    let (server, _folder) = server();
    bench(&server, "resolve", &["--users", "20"]);
    let found = json(&server.run(&["resolve", "--json", "handle:ada_0"])).remove(0);
    let id = found["user"]["userId"].as_str().unwrap();
    json(&server.run(&["identity", "unlink", "--json", id, "handle:ada_0"]));
    let output = server.run(&[&["bench", "resolve", "--users", "20"], &QUICK[..]].concat());
    assert_fails(&output, 1, &["not as it was loaded"]);
}

#[test]
fn a_wrong_answer_is_found_out() {
    let (server, _folder) = server();
    bench(&server, "resolve", &["--users", "1"]);
    let found = json(&server.run(&["resolve", "--json", "handle:ada_0"])).remove(0);
    let id = found["user"]["userId"].as_str().unwrap();
    let arguments = ["bench", "resolve", "--json", "--users", "1", "--duration", "3", "--warmup", "0"];
    let output = std::thread::scope(|scope| {
        let measuring = scope.spawn(|| server.run(&arguments));
        std::thread::sleep(Duration::from_secs(1));
        json(&server.run(&["user", "update", "--json", id, "--name", "somebody else"]));
        measuring.join().unwrap()
    });
    assert_fails(&output, 1, &["answers were wrong"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(number(&report, "wrong") > 0.0 && number(&report, "calls_per_second") > 0.0, "{report}");
}

#[test]
fn calls_that_failed_are_a_failure() {
    let (server, _folder) = server();
    let output = std::thread::scope(|scope| {
        let measuring = scope.spawn(|| server.run(&["bench", "health", "--json", "--duration", "2", "--warmup", "0"]));
        std::thread::sleep(Duration::from_secs(1));
        server.signal("KILL");
        measuring.join().unwrap()
    });
    assert_fails(&output, 1, &["calls failed", "errors, the first: "]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(number(&report, "errors") > 0.0, "{report}");
}

#[test]
fn what_was_measured_before_ctrl_c_is_told() {
    let (server, _folder) = server();
    let arguments = ["bench", "health", "--json", "--duration", "600", "--warmup", "0", "--server", &server.url];
    let bench = polynym(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    assert!(Command::new("kill").args(["-INT", &bench.id().to_string()]).status().unwrap().success());
    let output = bench.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(number(&report, "calls_per_second") > 0.0 && number(&report, "errors") == 0.0, "{report}");
}
