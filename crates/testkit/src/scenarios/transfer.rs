//! Imports and exports with the real program.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::{Value, json};

use crate::output::{stderr, stdout};
use crate::server::{Server, polynym};

/// Returns the lines of an export without tenants, which each store changes itself.
pub fn export(server: &Server, arguments: &[&str]) -> Vec<String> {
    let output = server.run(&[&["export"], arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = stdout(&output);
    lines.lines().filter(|line| !line.contains("\"tenant_record\"")).map(str::to_owned).collect()
}

/// Lines of an export without the times of imports, which each store sets itself.
pub fn without_import_times(lines: Vec<String>) -> Vec<String> {
    const KEY: &str = "\"importTime\":\"";
    let without = |mut line: String| {
        while let Some(begin) = line.find(KEY) {
            let end = line[begin + KEY.len()..].find("\",").unwrap() + "\",".len();
            line.replace_range(begin..begin + KEY.len() + end, "");
        }
        line
    };
    lines.into_iter().map(without).collect()
}

/// Runs an import that reads `input`.
pub fn import(server: &Server, folder: &Path, arguments: &[&str], input: &[u8]) -> Output {
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

/// Returns random users as JSON Lines.
pub fn sample(arguments: &[&str]) -> Vec<u8> {
    let output = polynym(&[&["sample"], arguments].concat()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    output.stdout
}

/// Starts a server on the store `name` in a folder.
pub fn embedded(folder: &Path, name: &str) -> Server {
    Server::start(&["--store", &format!("embedded:{}", folder.join(name).display())])
}

/// Imports a file. Returns the output and the rejects.
pub fn import_file(server: &Server, path: &str, arguments: &[&str]) -> (String, Vec<Value>) {
    let output = server.run(&[&["import", path], arguments].concat());
    let rejects = match path.strip_suffix(".csv") {
        Some(stem) => rejected_rows(&format!("{stem}.rejects.csv")),
        None => {
            let text = fs::read_to_string(format!("{path}.rejects")).unwrap_or_default();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        }
    };
    (stdout(&output), rejects)
}

/// The rows of a table of rejects, as objects.
fn rejected_rows(path: &str) -> Vec<Value> {
    let Ok(text) = fs::read_to_string(path) else { return Vec::new() };
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let rows = reader.records().map(|row| {
        let row = row.unwrap();
        let cell = |n: usize| row[n].to_owned();
        let line: i64 = row[0].parse().unwrap();
        json!({ "line": line, "reason": cell(2), "column": cell(3), "message": cell(5) })
    });
    rows.collect()
}

/// A line with a user with these attribute names.
fn named(names: impl Iterator<Item = usize>) -> String {
    let attributes: Vec<_> = names.map(|n| format!(r#""name {n}":{{"intValue":"1"}}"#)).collect();
    format!("{{\"attributes\":{{{}}}}}\n", attributes.join(","))
}

/// Only the user with the 10,001st name of a tenant is rejected.
pub fn names_are_limited(server: &Server, path: &str) {
    let all: String = (0..50).map(|user| named(200 * user..200 * (user + 1))).collect();
    fs::write(path, all).unwrap();
    let (text, rejects) = import_file(server, path, &[]);
    assert!(text.starts_with("50 imported") && rejects.is_empty(), "{text}");

    fs::write(path, [named(0..3), named(9_999..10_001), named(5_000..5_002)].concat()).unwrap();
    let (text, rejects) = import_file(server, path, &[]);
    assert!(text.starts_with("2 imported, 0 there already, 1 lines rejected"), "{text}");
    assert_eq!(
        (&rejects[0]["line"], &rejects[0]["reason"]),
        (&2.into(), &"ATTRIBUTE_NAMES_FULL".into())
    );
    assert_eq!(export(server, &[]).len(), 52);
}

/// The file that is imported.
const FILE: &str = "users.jsonl";

/// Starts an import of [`FILE`].
fn start(server: &Server, folder: &Path) -> Child {
    let mut command = polynym(&["import", FILE]);
    command.current_dir(folder).env("POLYNYM_SERVER", &server.url);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The users without ids, times and etags, which differ between imports.
fn content(server: &Server) -> Vec<String> {
    let mut users: Vec<_> = export(server, &[])
        .iter()
        .map(|line| {
            let mut user: Value = serde_json::from_str(line).unwrap();
            for key in ["userId", "createTime", "updateTime", "etag"] {
                user.as_object_mut().unwrap().remove(key);
            }
            for identity in user["identities"].as_array_mut().into_iter().flatten() {
                let identity = identity.as_object_mut().unwrap();
                identity.remove("linkTime");
                identity.remove("importTime");
            }
            user.to_string()
        })
        .collect();
    users.sort();
    users
}

/// Kills the client or the server at random this number of times, then completes the import.
/// `serve` starts a server on the store of the import.
pub fn import_with_kills(times: u32, users: &str, seed: u64, serve: impl Fn(&Path) -> Server) {
    let folder = tempfile::tempdir().unwrap();
    let lines = sample(&["--users", users, "--dirty", "0", "--seed", "3"]);
    fs::write(folder.path().join(FILE), lines).unwrap();
    let whole = embedded(folder.path(), "whole");
    let output = start(&whole, folder.path()).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let wanted = content(&whole);
    assert_eq!(wanted.len().to_string(), users);

    let mut rng = Rng::with_seed(seed);
    let mut server = serve(folder.path());
    for _ in 0..times {
        let mut client = start(&server, folder.path());
        sleep(Duration::from_millis(rng.u64(20..400)));
        if rng.bool() {
            client.kill().unwrap();
            client.wait().unwrap();
        } else {
            drop(server);
            let output = client.wait_with_output().unwrap();
            let is_done = output.status.success();
            // The import may not have begun.
            let is_explained =
                ["to continue", "cannot reach"].iter().any(|text| stderr(&output).contains(text));
            assert!(is_done || is_explained, "{}", stderr(&output));
            server = serve(folder.path());
        }
    }
    let output = start(&server, folder.path()).wait_with_output().unwrap();
    assert!(output.status.success(), "{} {}", stdout(&output), stderr(&output));
    // The router of these tests may show a stale cluster for some seconds.
    let since = Instant::now();
    while content(&server) != wanted && since.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(500));
    }
    assert_eq!(content(&server), wanted);
}
