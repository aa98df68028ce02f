//! Rules of the source tree beyond those of the compiler and clippy: layers, lengths, links and
//! unfinished work. Every fault names its file and line.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

#[path = "tidy/links.rs"]
mod links;

use std::fs;
use std::path::{Path, PathBuf};

/// The maximum lines of a file, and of the median file, without its tests.
const FILE_LINES: usize = 400;
const MEDIAN_FILE_LINES: usize = 120;
/// The maximum characters of a line; URLs and tables are exempt.
const LINE_CHARS: usize = 100;

/// The modules that each module may import. `commands` and the root assemble the program.
const LAYERS: [(&str, &[&str]); 14] = [
    ("reload", &[]),
    ("access", &["reload"]),
    ("identifier", &[]),
    ("config", &[]),
    ("telemetry", &[]),
    ("proto", &[]),
    ("directory", &["identifier", "proto"]),
    ("store", &["directory", "identifier"]),
    ("sample", &["directory", "identifier"]),
    ("transport", &["access", "reload"]),
    ("grpc", &["access", "directory", "identifier", "proto", "transport"]),
    ("operators", &["access", "directory", "telemetry", "transport"]),
    ("cli", &["access", "config", "identifier", "proto", "sample"]),
    ("commands", &[]),
];

/// The folders and files that may use each of these crates.
const CRATES: [(&str, &[&str]); 6] = [
    ("redb", &["src/store/embedded"]),
    ("mongodb", &["src/store/mongo", "src/config"]),
    ("hyper", &["src/cli", "src/operators", "src/transport"]),
    ("tonic", &["src/cli", "src/grpc", "src/proto.rs", "src/transport"]),
    ("prost_types", &["src/cli", "src/directory", "src/grpc"]),
    ("clap", &["src/cli", "src/config", "src/main.rs"]),
];

#[test]
fn modules_import_only_the_layers_below() {
    let faults = code().into_iter().filter_map(|line| {
        let home = line.path.strip_prefix("src/")?.split(['/', '.']).next()?;
        let (_, allowed) = LAYERS.iter().find(|(name, _)| *name == home)?;
        let target = after(&line.text, "crate::")?;
        let is_layer = LAYERS.iter().any(|(name, _)| *name == target);
        let is_allowed = target == home || allowed.contains(&target) || !is_layer;
        (!is_allowed).then(|| format!("{}: {home} may not import {target}", line.place()))
    });
    report(faults.collect());
}

#[test]
fn each_crate_is_used_only_where_allowed() {
    let faults = code().into_iter().flat_map(|line| {
        let forbidden = |(name, homes): &&(&str, &[&str])| {
            after(&line.text, &format!("{name}::")).is_some()
                && !homes.iter().any(|home| line.path.starts_with(home))
        };
        let forbidden: Vec<_> = CRATES.iter().filter(forbidden).collect();
        let fault = |(name, _): &(&str, &[&str])| format!("{}: uses {name}", line.place());
        forbidden.into_iter().map(fault).collect::<Vec<_>>()
    });
    report(faults.collect());
}

#[test]
fn files_are_short() {
    let mut lengths: Vec<_> = rust_files()
        .into_iter()
        .filter(|path| path.starts_with("src/") || path.starts_with("crates/"))
        .filter(|path| !is_test(path))
        .map(|path| (program(&read(&path)).lines().count(), path))
        .collect();
    lengths.sort();

    let (median, longest) = (lengths[lengths.len() / 2].0, &lengths[lengths.len() - 1]);
    println!("{} files, median {median} lines, longest {longest:?}", lengths.len());
    assert!(median <= MEDIAN_FILE_LINES, "the median file has {median} lines");
    assert!(longest.0 <= FILE_LINES, "{longest:?} has more than {FILE_LINES} lines");
}

#[test]
fn lines_are_short() {
    let mut faults = Vec::new();
    for path in rust_files() {
        for (n, line) in read(&path).lines().enumerate() {
            let is_exempt = line.contains("://") || line.contains(" | ");
            if line.chars().count() > LINE_CHARS && !is_exempt {
                faults.push(format!("{path}:{}: over {LINE_CHARS} characters", n + 1));
            }
        }
    }
    report(faults);
}

#[test]
fn every_file_starts_with_a_module_comment() {
    let without_comment = rust_files().into_iter().filter(|path| !read(path).starts_with("//!"));
    report(without_comment.map(|path| format!("{path}:1: does not start with //!")).collect());
}

#[test]
fn no_unfinished_work_is_left() {
    report(texts().iter().flat_map(|(path, text)| leftovers(path, text)).collect());
}

#[test]
fn links_have_targets() {
    let documents: Vec<_> = texts().into_iter().filter(|(path, _)| path.ends_with(".md")).collect();
    assert!(!documents.is_empty());
    report(documents.iter().flat_map(|(path, text)| links::faults(&root(), path, text)).collect());
}

/// Cargo does not run a test file that is named neither in Cargo.toml nor in tests/suite.rs.
#[test]
fn every_test_file_is_run() {
    let (manifest, suite) = (read("Cargo.toml"), read("tests/suite.rs"));
    let (named, module) = (
        |name: &str| format!("[[test]]\nname = \"{name}\""),
        |name: &str| format!("\nmod {name};"),
    );
    let files = files("tests").into_iter().filter(|path| path.matches('/').count() == 1);
    let names: Vec<_> = files
        .filter_map(|path| Some(path.strip_prefix("tests/")?.strip_suffix(".rs")?.to_owned()))
        .collect();
    let runs = |name: &String| manifest.contains(&named(name)) || suite.contains(&module(name));
    let faults: Vec<_> = names.iter().filter(|name| !runs(name)).collect();
    assert!(
        names.len() > 10 && faults.is_empty(),
        "neither in tests/suite.rs nor in Cargo.toml: {faults:?}"
    );
}

#[test]
fn the_checks_find_faults() {
    assert_eq!(after("use crate::{a};", "crate::"), Some(""));
    assert_eq!(after("use crate::store::mongo;", "crate::"), Some("store"));
    assert_eq!(after("use tonic_health::pb;", "tonic::"), None);
    assert_eq!(program("a\n#[cfg(test)]\nmod tests {"), "a\n");
    let text = format!("{}\nin \"/ho{}/joe\"", ["TO", "DO"].concat(), "me");
    assert_eq!(leftovers("a.rs", &text).len(), 2);
    let text = "# A b\n[x](nowhere.md) [y](#a-b) [z](#c) [c](Cargo.toml)";
    assert_eq!(links::faults(&root(), "README.md", text).len(), 2);
}

fn report(mut faults: Vec<String>) {
    faults.sort();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// One line of code.
struct Line {
    path: String,
    number: usize,
    text: String,
}

impl Line {
    fn place(&self) -> String {
        format!("{}:{}", self.path, self.number)
    }
}

/// Returns the lines of the program under `src`, without comments and tests.
fn code() -> Vec<Line> {
    let files = rust_files().into_iter().filter(|path| path.starts_with("src/") && !is_test(path));
    let lines: Vec<_> = files
        .flat_map(|path| {
            let text = read(&path);
            let lines = program(&text).lines().enumerate();
            let lines = lines.filter(|(_, line)| !line.trim_start().starts_with("//"));
            let line = |(n, line): (usize, &str)| Line {
                path: path.clone(),
                number: n + 1,
                text: line.to_owned(),
            };
            lines.map(line).collect::<Vec<_>>()
        })
        .collect();
    assert!(lines.len() > 10_000, "{} lines", lines.len());
    lines
}

/// Returns the word after `prefix`, if `prefix` starts a word.
fn after<'a>(line: &'a str, prefix: &str) -> Option<&'a str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let at = line
        .match_indices(prefix)
        .find(|(at, _)| !line[..*at].chars().next_back().is_some_and(is_word))?
        .0;
    line[at + prefix.len()..].split(|c: char| !(c.is_alphanumeric() || c == '_')).next()
}

/// Returns the part of a file before its tests.
fn program(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text)
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

/// Finds words of unfinished work, and absolute paths of one machine. The words are assembled here,
/// so that this file passes the check.
fn leftovers(path: &str, text: &str) -> Vec<String> {
    let unfinished =
        ["TO:DO", "FIX:ME", "to:do!", "un:implemented!"].map(|word| word.replace(':', ""));
    let places = ["ho:me", "ro:ot", "Us:ers", "wo:rk", "tm:p"]
        .map(|folder| format!("/{}/", folder.replace(':', "")));
    let starts = |line: &str, place: &str| {
        let before = line.find(place).map(|at| line[..at].chars().next_back());
        before.is_some_and(|before| {
            before.is_none_or(|c| !c.is_alphanumeric() && !"./-_}>".contains(c))
        })
    };

    let faults = text.lines().enumerate().flat_map(|(n, line)| {
        let unfinished = unfinished.iter().filter(|word| line.contains(*word));
        let places = places.iter().filter(|place| starts(line, place));
        let found =
            unfinished.chain(places).map(|word| format!("{path}:{}: {word} is not allowed", n + 1));
        found.collect::<Vec<_>>()
    });
    faults.collect()
}

fn rust_files() -> Vec<String> {
    let folders = ["src", "crates", "tests", "benches"];
    folders.into_iter().flat_map(files).filter(|path| path.ends_with(".rs")).collect()
}

/// Returns the text files of the project, with their paths.
fn texts() -> Vec<(String, String)> {
    let endings = [
        ".rs",
        ".md",
        ".toml",
        ".proto",
        ".yaml",
        ".yml",
        ".service",
        "Containerfile",
        "run",
        ".sh",
        ".py",
    ];

    let is_text = |path: &String| endings.iter().any(|ending| path.ends_with(ending));
    files("").into_iter().filter(is_text).map(|path| (path.clone(), read(&path))).collect()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the files at or under a path, as paths from the root, without build output and data.
fn files(under: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut queue = vec![root().join(under)];

    while let Some(path) = queue.pop() {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        if matches!(name.as_str(), "target" | ".git" | "polynym-data" | "tests/data") {
            continue;
        }
        if path.is_dir() {
            queue.extend(entries(&path));
        } else {
            found.push(name);
        }
    }

    found.sort();
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}
