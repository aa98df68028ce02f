//! The testbed fails a client that answers nothing right.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

#[test]
fn a_client_without_answers_fails() {
    let mut testbed = Command::new(env!("CARGO_BIN_EXE_client-testbed"))
        .arg("errors have a type")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answers = testbed.stdin.take().unwrap();
    for step in BufReader::new(testbed.stdout.take().unwrap()).lines() {
        let step: Value = serde_json::from_str(&step.unwrap()).unwrap();
        writeln!(answers, "{}", json!({ "id": step["id"] })).unwrap();
    }
    let mut verdict = String::new();
    testbed.stderr.take().unwrap().read_to_string(&mut verdict).unwrap();
    assert_eq!(testbed.wait().unwrap().code(), Some(1), "{verdict}");
    assert!(verdict.contains("failed: errors have a type"), "{verdict}");
}
