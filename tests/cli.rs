//! The program from outside: what its commands print, and with which status they exit.

mod bench;
mod client;
mod counting;
mod life;
mod offline;
mod sample;
mod serving;
mod strangers;
mod stumbling;

use std::process::Output;

/// What a command printed.
pub fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What a command said of errors.
pub fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The JSON objects that a command printed, one a line.
pub fn json(output: &Output) -> Vec<serde_json::Value> {
    assert!(output.status.success(), "{}", err(output));
    out(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Checks the exit status, and that standard error has all of `parts`.
pub fn assert_fails(output: &Output, status: i32, parts: &[&str]) {
    let text = err(output);
    assert_eq!(output.status.code(), Some(status), "{text}");
    for part in parts {
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
}
