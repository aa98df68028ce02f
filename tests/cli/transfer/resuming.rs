//! Imports that are broken off, and go on.

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use super::{FILE, broken_off, embedded, export, sample, start};
use crate::err;
use crate::out;

#[test]
fn an_import_that_is_broken_off_goes_on() {
    broken_off(5, "3000", 1, |folder| embedded(folder, "broken"));
}

#[test]
#[ignore = "runs for minutes"]
fn long_an_import_that_is_broken_off_a_hundred_times_goes_on() {
    broken_off(100, "20000", 2, |folder| embedded(folder, "broken"));
}

/// Ctrl-C: what was sent is finished, nothing else is sent, and the command says how to go on.
#[cfg(unix)]
#[test]
fn an_import_that_is_interrupted_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = embedded(folder.path(), "store");
    let lines = sample(&["--users", "8000", "--dirty", "0", "--seed", "5"]);
    fs::write(folder.path().join(FILE), lines).unwrap();

    let client = start(&server, folder.path());
    let is_begun = || !out(&server.run(&["user", "list", "--limit", "1", "--json"])).is_empty();
    while !is_begun() {
        sleep(Duration::from_millis(20));
    }
    let interrupted = Command::new("kill").args(["-INT", &client.id().to_string()]).status();
    assert!(interrupted.unwrap().success());
    let output = client.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
    assert!(err(&output).contains("run the same command again to continue"), "{}", err(&output));

    let output = start(&server, folder.path()).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    let text = out(&output);
    assert!(!text.starts_with("0 imported") && !text.contains(" 0 there already"), "{text}");
    assert_eq!(export(&server, &[]).len(), 8_000);
}
