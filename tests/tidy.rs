//! The rules of the house, checked as text: who may import whom, how long files and functions may
//! be, and what stands nowhere. Every fault is told with its file and line.

#![allow(clippy::unwrap_used, reason = "where a test cannot go on, it has failed")]

#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/source.rs"]
mod source;

use std::fs;
use std::path::{Path, PathBuf};

use source::{Source, line, words};

/// The longest file and function, and the longest that the middle one may be.
const FILE_LINES: Bounds = Bounds { median: 200, most: 500 };
const FUNCTION_LINES: Bounds = Bounds { median: 12, most: 70 };

struct Bounds {
    median: usize,
    most: usize,
}

/// What each module may import of the project. The last three are the program itself, which puts
/// the parts together.
const IMPORTS: [(&str, &[&str]); 20] = [
    ("locality", &[]),
    ("identifier", &[]),
    ("config", &[]),
    ("telemetry", &[]),
    ("proto", &[]),
    ("directory", &["locality", "identifier", "directory::wire"]),
    // Users are kept in the form in which answers carry them: docs/decisions/0005.
    ("directory::wire", &["directory", "identifier", "locality", "proto"]),
    ("store", &[]),
    ("store::embedded", &["directory", "identifier", "locality", "store::integrity"]),
    ("store::mongo", &["directory", "identifier", "locality", "store::integrity"]),
    ("store::integrity", &["directory", "identifier", "locality"]),
    ("store::coalesce", &["directory", "identifier", "locality"]),
    ("store::cache", &["directory", "identifier", "locality"]),
    ("store::conformance", &["directory", "identifier", "locality"]),
    ("auth", &["directory"]),
    ("sample", &["directory", "identifier", "locality"]),
    ("grpc", &["directory", "auth", "identifier", "locality", "proto"]),
    ("cli", &["config", "proto", "locality", "identifier"]),
    ("commands", &PARTS),
    ("", &PARTS),
];

const PARTS: [&str; 17] = [
    "auth",
    "cli",
    "config",
    "directory",
    "grpc",
    "identifier",
    "locality",
    "sample",
    "store",
    "store::cache",
    "store::coalesce",
    "store::conformance",
    "store::embedded",
    "store::mongo",
    "store::integrity",
    "telemetry",
    "commands",
];

/// Crates that only some modules may use.
const CRATES: [(&str, &[&str]); 11] = [
    ("redb", &["store::embedded"]),
    // What the driver takes for an address is asked of the driver.
    ("mongodb", &["store::mongo", "config"]),
    ("bson", &["store::mongo"]),
    ("tonic", &["proto", "grpc", "cli"]),
    ("tonic_prost", &["proto", "grpc", "cli"]),
    ("tonic_types", &["proto", "grpc", "cli"]),
    ("tonic_health", &["grpc", "cli"]),
    ("tonic_reflection", &["grpc"]),
    ("prost_types", &["proto", "grpc", "cli", "directory::wire"]),
    ("prost_reflect", &["proto", "grpc", "cli"]),
    // The embedded store keeps its own records in this encoding; the API's messages stay out of it.
    ("prost", &["proto", "grpc", "cli", "directory::wire", "store::embedded"]),
];

/// Generated code stands here, with the lints that it does not pass.
const GENERATED: &str = "src/proto.rs";

#[test]
fn imports() {
    report(
        program()
            .iter()
            .filter(|source| source.path.starts_with("src/"))
            .flat_map(import_faults)
            .collect(),
    );
}

#[test]
fn crates() {
    report(
        program()
            .iter()
            .filter(|source| source.path.starts_with("src/"))
            .flat_map(crate_faults)
            .collect(),
    );
}

#[test]
fn lengths() {
    let sources = program();
    let files = sources.iter().map(|source| (source.path.clone(), source.lines()));
    let mut faults = length_faults("file", &FILE_LINES, files.collect());
    let functions = sources.iter().flat_map(|source| {
        let place = |function: &source::Function| {
            format!("{}:{}: fn {}", source.path, function.line, function.name)
        };
        source.functions().into_iter().map(move |function| (place(&function), function.lines))
    });
    faults.extend(length_faults("function", &FUNCTION_LINES, functions.collect()));
    report(faults);
}

#[test]
fn modules_tell_what_they_are() {
    let all = ["src", "benches", "tests", "build.rs"].into_iter().flat_map(sources);
    let untold = all.filter(|source| !source.text.starts_with("//!"));
    report(untold.map(|source| format!("{}:1: does not start with //!", source.path)).collect());
}

#[test]
fn nothing_that_has_no_place_here() {
    let mut faults: Vec<_> =
        program().iter().flat_map(|source| [unwraps(source), macros(source)].concat()).collect();
    faults.extend(
        ["src", "benches", "tests"]
            .into_iter()
            .flat_map(sources)
            .flat_map(|source| bare_allows(&source)),
    );
    faults.extend(texts().iter().flat_map(|(path, text)| word_faults(path, text)));
    faults.extend(
        sources("src/grpc")
            .iter()
            .filter(|source| source.path.ends_with("/status.rs"))
            .flat_map(catch_alls),
    );
    report(faults);
}

#[test]
fn links_lead_somewhere() {
    let documents: Vec<_> = texts().into_iter().filter(|(path, _)| path.ends_with(".md")).collect();
    assert!(!documents.is_empty());
    report(documents.iter().flat_map(|(path, text)| links::faults(&root(), path, text)).collect());
}

/// A file of faults: what these checks do not see, they cannot hold.
#[test]
fn faults_are_seen() {
    let text = "use crate::{locality::Id, grpc::{self, serve}};\nfn f<'a>(_: &'a str) -> char {\n    // super::x\n    \
                let _ = r#\"\"unwrap()\"#;\n    '{'\n}\n#[cfg(test)]\nmod tests {\n    fn g() {\n    }\n}\n\
                #[allow(dead_code)]\nfn h() {\n    redb::x().unwrap();\n    match 1 { _ => super::super::store::embedded::y() }\n}\n";
    let source = Source::new("src/identifier/made_up.rs", text);
    let functions = source
        .functions()
        .into_iter()
        .map(|function| (function.name, function.line, function.lines));
    assert_eq!(functions.collect::<Vec<_>>(), [("f".to_owned(), 2, 5), ("h".to_owned(), 13, 4)]);
    assert_eq!(source.lines(), 11);
    let imports = import_faults(&source);
    assert_eq!(imports.len(), 4, "{imports:#?}");
    assert!(
        imports[0].starts_with("src/identifier/made_up.rs:1: identifier may not import locality"),
        "{imports:#?}"
    );
    assert!(imports[3].ends_with(":15: identifier may not import store::embedded"), "{imports:#?}");
    assert_eq!(
        crate_faults(&source),
        ["src/identifier/made_up.rs:14: identifier may not use the crate redb"]
    );
    assert_eq!(unwraps(&source), ["src/identifier/made_up.rs:14: unwrap() outside tests"]);
    assert_eq!(bare_allows(&source), ["src/identifier/made_up.rs:12: an allow without its reason"]);
    assert_eq!(catch_alls(&source).len(), 1);
    let long = (1..=20).map(|n| (format!("f{n}"), 60 + n)).collect();
    assert_eq!(length_faults("function", &FUNCTION_LINES, long).len(), 1 + 10);
    assert_eq!(
        word_faults("a.rs", &format!("{}\nin \"/ho{}/joe\"", ["TO", "DO"].concat(), "me")).len(),
        2
    );
    assert_eq!(
        links::faults(
            &root(),
            "README.md",
            "# A b\n[x](nowhere.md) [y](#a-b) [z](#c) [c](Cargo.toml)"
        )
        .len(),
        2
    );
}

fn report(mut faults: Vec<String>) {
    faults.sort();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

fn import_faults(source: &Source) -> Vec<String> {
    let own = place(&source.path);
    let home = module(&own);
    let Some((_, allowed)) = IMPORTS.iter().find(|(name, _)| *name == home) else {
        return vec![format!("{}:1: module {home} is not in the table of imports", source.path)];
    };
    let mut faults = Vec::new();
    for (line, path) in source.project_paths() {
        let target = module(&absolute(&own, &path));
        if target != home && !allowed.contains(&target.as_str()) {
            let target = if target.is_empty() { "the root" } else { &target };
            faults.push(format!(
                "{}:{line}: {} may not import {target}",
                source.path,
                named(&home)
            ));
        }
    }
    faults
}

fn crate_faults(source: &Source) -> Vec<String> {
    let home = module(&place(&source.path));
    let barred = CRATES.iter().filter(|(_, homes)| !homes.contains(&home.as_str()));
    let fault = |line, name| {
        format!("{}:{line}: {} may not use the crate {name}", source.path, named(&home))
    };
    barred
        .flat_map(|(name, _)| {
            source.crate_uses(name).into_iter().map(move |line| fault(line, name))
        })
        .collect()
}

fn named(module: &str) -> &str {
    if module.is_empty() { "the root" } else { module }
}

/// The module that a file of `src/` is.
fn place(path: &str) -> Vec<String> {
    let path = path.trim_start_matches("src/").trim_end_matches(".rs");
    let parts = path.split('/').filter(|part| !matches!(*part, "mod" | "lib" | "main"));
    parts.map(str::to_owned).collect()
}

/// What a path that starts with `crate`, `polynym` or `super` stands for.
fn absolute(own: &[String], path: &[String]) -> Vec<String> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let start = if ups == 0 { &[] } else { &own[..own.len().saturating_sub(ups)] };
    start.iter().chain(&path[ups.max(1)..]).cloned().collect()
}

/// The module of the table that a path lies in. A path that ends in a name of the root lies in the
/// root.
fn module(path: &[String]) -> String {
    let known = |name: &str| IMPORTS.iter().any(|(module, _)| *module == name);
    let pair = path.iter().take(2).cloned().collect::<Vec<_>>().join("::");
    if known(&pair) { pair } else { path.first().cloned().unwrap_or_default() }
}

fn length_faults(what: &str, bounds: &Bounds, mut lengths: Vec<(String, usize)>) -> Vec<String> {
    assert!(!lengths.is_empty());
    lengths.sort_by_key(|(_, length)| *length);
    let median = lengths[lengths.len() / 2].1;
    println!(
        "{} {what}s, median {median} lines, longest {}",
        lengths.len(),
        lengths[lengths.len() - 1].1
    );
    let mut faults = Vec::new();
    if median > bounds.median {
        faults.push(format!("the middle {what} has {median} lines, more than {}", bounds.median));
    }
    let long = lengths.iter().filter(|(_, length)| *length > bounds.most);
    faults.extend(long.map(|(name, length)| {
        format!("{name}: the {what} has {length} lines, more than {}", bounds.most)
    }));
    faults
}

fn unwraps(source: &Source) -> Vec<String> {
    at_words(source, "unwrap", |rest| rest.starts_with("()"), "unwrap() outside tests")
}

fn macros(source: &Source) -> Vec<String> {
    at_words(source, "macro_rules", |_| true, "a macro where a function would do")
}

/// A status must be chosen for each error, so that a new one cannot be forgotten.
fn catch_alls(source: &Source) -> Vec<String> {
    at_words(source, "_", |rest| rest.trim_start().starts_with("=>"), "an arm that catches all")
}

/// An `allow` gives its reason, or a comment right above it does.
fn bare_allows(source: &Source) -> Vec<String> {
    if source.path == GENERATED {
        return Vec::new();
    }
    let lines: Vec<_> = source.text.lines().collect();
    let is_bare = |n: usize| {
        let reasons = [lines[n], lines.get(n.wrapping_sub(1)).unwrap_or(&"")];
        !lines[n].contains("reason") && !reasons.iter().any(|line| line.contains("//"))
    };
    let code = source.code.lines().enumerate();
    let allows = code.filter(|(n, code)| {
        code.trim_start().starts_with("#") && code.contains("allow(") && is_bare(*n)
    });
    allows.map(|(n, _)| format!("{}:{}: an allow without its reason", source.path, n + 1)).collect()
}

fn at_words(
    source: &Source,
    word: &str,
    is_fault: impl Fn(&str) -> bool,
    message: &str,
) -> Vec<String> {
    let found = words(&source.code)
        .filter(|(at, found)| *found == word && is_fault(&source.code[at + word.len()..]));
    found.map(|(at, _)| format!("{}:{}: {message}", source.path, line(&source.code, at))).collect()
}

/// Unfinished work, and places that only one machine has. The words are put together here, so as
/// not to be found here.
fn word_faults(path: &str, text: &str) -> Vec<String> {
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
        let found = unfinished
            .chain(places)
            .map(|word| format!("{path}:{}: {word} has no place here", n + 1));
        found.collect::<Vec<_>>()
    });
    faults.collect()
}

/// What is compiled into the program or measures it, without what only tests it.
fn program() -> Vec<Source> {
    let all = ["src", "benches", "build.rs"].into_iter().flat_map(sources);
    all.filter(|source| !source.is_test()).collect()
}

/// A file of tests that no program names would not run.
#[test]
fn every_file_of_tests_is_run() {
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

/// The Rust files at or under a path.
fn sources(under: &str) -> Vec<Source> {
    let files = files(under).into_iter().filter(|path| path.ends_with(".rs"));
    let sources: Vec<_> = files.map(|path| Source::new(&path, &read(&path))).collect();
    assert!(!sources.is_empty(), "no Rust file under {under}");
    sources
}

/// All that people wrote for this project: path and text.
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
    let own =
        files("").into_iter().filter(|path| endings.iter().any(|ending| path.ends_with(ending)));
    own.map(|path| (path.clone(), read(&path))).collect()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files at or under a path, as paths from the root; not those that are built, or of others.
fn files(under: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![root().join(under)];
    while let Some(path) = waiting.pop() {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        if matches!(name.as_str(), "target" | ".git" | "polynym-data" | "tests/data") {
            continue;
        }
        if path.is_dir() {
            waiting.extend(entries(&path));
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
