//! The output of commands.

use std::process::Output;

/// Returns the standard output of a command.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Returns the standard error of a command.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Parses the JSON objects on standard output, one per line.
pub fn json(output: &Output) -> Vec<serde_json::Value> {
    assert!(output.status.success(), "{}", stderr(output));
    stdout(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Asserts the exit status, and that standard error contains all of `parts`.
pub fn assert_fails(output: &Output, status: i32, parts: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(status), "{text}");
    for part in parts {
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
}
