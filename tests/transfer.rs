//! Import and export with the real program: bad input, moving between stores, and going on after
//! what broke an import off.

mod backup;
mod bad;
mod directions;
mod ids;
mod resuming;

use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::cli::{err, out};
use crate::support::server::{Server, polynym};

/// Returns the lines of an export, without the tenants: each store has changed its own.
fn export(server: &Server, arguments: &[&str]) -> Vec<String> {
    let output = server.run(&[&["export"], arguments].concat());
    assert!(output.status.success(), "{}", err(&output));
    let lines = out(&output);
    lines.lines().filter(|line| !line.contains("\"tenant_record\"")).map(str::to_owned).collect()
}

/// Runs an import that reads `input`.
fn import(server: &Server, folder: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = polynym(&[&["import", "-"], arguments].concat());
    command.current_dir(folder).env("POLYNYM_SERVER", &server.url);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

/// Returns made-up users as JSON Lines.
fn sample(arguments: &[&str]) -> Vec<u8> {
    let output = polynym(&[&["sample"], arguments].concat()).output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    output.stdout
}

fn embedded(folder: &Path, name: &str) -> Server {
    Server::start(&["--store", &format!("embedded:{}", folder.join(name).display())])
}
