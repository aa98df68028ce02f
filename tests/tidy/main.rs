//! Rules of the source tree beyond those of the compiler and clippy: folders, lengths, links, names
//! in documents and unfinished work. Every fault names its file.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod allowed;
mod api;
mod commands;
mod folders;
mod imports;
mod inline_code;
mod links;
mod matrix;
mod names;
mod translations;
mod unfinished;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use allowed::{FILE_LINES, LINE_CHARS};
use names::Names;
use translations::Texts;

#[test]
fn files_are_short() {
    let lengths =
        source_files().into_iter().map(|path| (program(&read(&path)).lines().count(), path));
    let long = lengths.filter(|(length, _)| *length > FILE_LINES);
    report(long.map(|(length, path)| format!("{path}: {length} lines")).collect());
}

#[test]
fn folders_are_small() {
    let files = source_files();
    let large = folders::large(&files, allowed::FOLDER_FILES);
    report(large.iter().map(|(folder, count)| format!("{folder}: {count} files")).collect());
}

#[test]
fn folders_do_not_import_each_other_in_circles() {
    let graph = imports::graph(&programs());
    let circles = imports::circles(&imports::folders(&graph), 1);
    // Files in the root of a crate are no folders: the test below bounds their circles.
    let has_folder = |set: &&BTreeSet<String>| set.iter().any(|path| !path.ends_with(".rs"));
    let fault = |circle: &BTreeSet<String>| {
        let between = imports::between(&graph, circle).join("\n  ");
        format!("circle: {circle:?}:\n  {between}")
    };
    report(circles.iter().filter(has_folder).map(fault).collect());
}

#[test]
fn files_of_a_folder_do_not_import_each_other_in_circles() {
    let graph = imports::graph(&programs());
    let circles = imports::circles(&imports::within_folders(&graph), allowed::FILE_CIRCLE);
    report(circles.iter().map(|circle| format!("circle: {circle:?}")).collect());
}

/// Documents and doc comments name only what exists. CHANGELOG.md is about the past.
#[test]
fn names_and_paths_in_texts_exist() {
    let names = names();
    let mut foreign: BTreeMap<_, _> =
        allowed::FOREIGN.iter().flat_map(|(_, names)| *names).map(|name| (*name, false)).collect();
    let mut faults = Vec::new();

    let is_checked = |path: &str| path != "CHANGELOG.md" && !path.starts_with("tests/tidy/");
    for (path, text) in texts().into_iter().filter(|(path, _)| is_checked(path)) {
        for (n, code, fault) in names.faults(&path, &text) {
            match foreign.get_mut(code.as_str()) {
                Some(is_used) => *is_used = true,
                None => faults.push(format!("{path}:{n}: {fault}: {code}")),
            }
        }
    }

    let unused = foreign.iter().filter(|(_, is_used)| !**is_used);
    faults.extend(unused.map(|(name, _)| format!("tests/tidy/allowed.rs: delete {name}")));
    report(faults);
}

fn names() -> Names {
    let defines = |path: &str| {
        let endings = [
            ".rs", ".proto", ".toml", ".py", ".ts", ".mts", ".mjs", ".go", ".java", ".yaml",
            ".json", ".sh", "run", ".service",
        ];
        endings.iter().any(|ending| path.ends_with(ending)) && !path.starts_with("tests/tidy")
    };
    let files = files("");
    let sources = files.iter().filter(|path| defines(path)).map(|path| (path.clone(), read(path)));
    Names::new(&files, sources)
}

/// docs/api.md lists the calls of the definition, and no others.
#[test]
fn every_call_is_documented() {
    let protos = files("proto/polynym").into_iter().map(|path| read(&path));
    let defined: BTreeSet<_> = protos.flat_map(|proto| api::defined(&proto)).collect();
    let documented = api::documented(&read("docs/api.md"));
    let missing = defined.difference(&documented).map(|call| format!("not in the table: {call:?}"));
    let unknown = documented.difference(&defined).map(|call| format!("no such call: {call:?}"));
    assert!(defined.len() > 30, "{defined:?}");
    report(missing.chain(unknown).collect());
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
    report(texts().iter().flat_map(|(path, text)| unfinished::faults(path, text)).collect());
}

#[test]
fn links_have_targets() {
    let documents: Vec<_> = texts().into_iter().filter(|(path, _)| path.ends_with(".md")).collect();
    assert!(!documents.is_empty());
    report(documents.iter().flat_map(|(path, text)| links::faults(&root(), path, text)).collect());
}

/// The catalogues have no message that no page can show any more.
#[test]
fn translations_are_of_what_is_written() {
    let mut texts = Texts::new();
    let templates = files("crates/console/templates");
    templates.iter().for_each(|path| texts.add_template(&read(path)));
    programs().values().for_each(|code| texts.add_strings(code));
    let stale = translations::stale(&read("crates/console/words/de.txt"), &texts);
    let known = "{} days ago\nDelete <b>{}</b>\n  x\nNobody wrote this.\n[verb] Deleted";
    assert_eq!(translations::stale(known, &texts), ["Nobody wrote this."]);
    report(stale.into_iter().map(|message| format!("words/de.txt: {message}")).collect());
}

/// What the directory refuses is said in the other languages.
#[test]
fn errors_are_translated() {
    let catalogue = read("crates/console/words/de.txt");
    let errors = ["error.rs", "error/detail.rs", "error/item.rs"]
        .map(|file| read(&format!("crates/directory/src/{file}")));
    let lacking = errors.iter().flat_map(|text| translations::untranslated(&catalogue, text));
    let example = "#[error(\n  \"nobody {who} it \\\n   here\"\n)] #[error(\"{0}\")]";
    assert_eq!(translations::untranslated("", example), ["Nobody {} it here."]);
    report(lacking.collect());
}

/// Cargo does not run a test file that no program of tests names.
#[test]
fn commands_in_documents_name_what_exists() {
    let documents = texts().into_iter().filter(|(path, _)| path.ends_with(".md"));
    report(documents.flat_map(|(path, text)| commands::faults(&path, &text)).collect());
}

#[test]
fn every_test_file_is_run() {
    let sources: Vec<_> = files("tests").into_iter().filter(|path| path.ends_with(".rs")).collect();
    let is_named = |path: &String| {
        let (folder, file) = path.rsplit_once('/').unwrap();
        if file == "main.rs" {
            return read("Cargo.toml").contains(&format!("path = \"{path}\""));
        }
        let (folder, name) = match file.strip_suffix(".rs") {
            Some("mod") => folder.rsplit_once('/').unwrap(),
            name => (folder, name.unwrap()),
        };
        let parents = ["main.rs", "mod.rs"].map(|parent| format!("{folder}/{parent}"));
        let mut named = parents.iter().filter(|parent| sources.contains(parent));
        named.any(|parent| read(parent).contains(&format!("mod {name};\n")))
    };
    let faults: Vec<_> = sources.iter().filter(|path| !is_named(path)).collect();
    assert!(sources.len() > 100 && faults.is_empty(), "no program has {faults:?}");
}

#[test]
fn the_checks_find_faults() {
    assert_eq!(program("a\n#[cfg(test)]\nmod tests {"), "a\n");
    let text = format!("{}\nin \"/ho{}/joe\"", ["TO", "DO"].concat(), "me");
    assert_eq!(unfinished::faults("a.rs", &text).len(), 2);
    let text = "# A b\n[x](nowhere.md) [y](#a-b) [z](#c) [c](Cargo.toml)";
    assert_eq!(links::faults(&root(), "README.md", text).len(), 2);
    assert_eq!(constant("x\npub const OLDEST: u64 = 4;\n", "OLDEST"), Some("4"));
}

/// Everything that changes a user, a tenant or an inbox has tests of all that must follow.
#[test]
fn the_matrix_is_complete() {
    report(matrix::faults());
}

/// docs/operations.md lists the versions that the stores and the rules support.
#[test]
fn the_table_of_versions_is_current() {
    let sources: Vec<_> = source_files().into_iter().map(|path| (read(&path), path)).collect();
    let schema = |store: &str| {
        let versions =
            sources.iter().filter(|(_, path)| path.contains(store)).find_map(|(text, _)| {
                let (oldest, newest) = (constant(text, "OLDEST")?, constant(text, "VERSION")?);
                let is_one = oldest == "VERSION";
                Some(if is_one { newest.to_owned() } else { format!("{oldest} to {newest}") })
            });
        versions.unwrap_or_else(|| panic!("{store} has no versions"))
    };
    let rules = sources.iter().find_map(|(text, _)| constant(text, "RULES_VERSION")).unwrap();
    let row = format!("| this one | {} | {} | {rules} |", schema("embedded"), schema("mongo"));
    assert!(read("docs/operations.md").contains(&row), "docs/operations.md lacks {row}");
}

/// Returns the value of a public constant.
fn constant<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("pub const {name}: "))?;
    rest.split(['=', ';']).nth(1).map(str::trim)
}

fn report(mut faults: Vec<String>) {
    faults.sort();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Returns the files of the program and the libraries, without tests.
fn source_files() -> Vec<String> {
    let in_sources = |path: &String| {
        let is_crate = path.starts_with("crates/") || path.starts_with("clients/");
        path.starts_with("src/") || (is_crate && path.contains("/src/"))
    };
    rust_files().into_iter().filter(in_sources).filter(|path| !is_test(path)).collect()
}

/// Returns the source files with their text without comments and tests.
fn programs() -> BTreeMap<String, String> {
    let text = |path: &str| {
        let text = read(path);
        let lines = program(&text).lines().filter(|line| !line.trim_start().starts_with("//"));
        lines.fold(String::new(), |code, line| code + line + "\n")
    };
    source_files().into_iter().map(|path| (path.clone(), text(&path))).collect()
}

/// Returns the part of a file before its tests.
fn program(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text)
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

fn rust_files() -> Vec<String> {
    let folders = ["src", "crates", "clients", "tests", "benches", "examples"];
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
        if matches!(
            name.as_str(),
            "target" | ".git" | "polynym-data" | "crates/identifier/src/tests/data"
        ) {
            continue;
        }
        let is_package = name.starts_with("clients/") || name.starts_with("tests/browser/");
        if is_package && path.file_name().is_some_and(is_built) {
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

/// Whether a folder of a client in another language has what its tools make.
fn is_built(folder: &OsStr) -> bool {
    ["build", "dist", "gen", "node_modules", "target"].iter().any(|name| folder == *name)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}
