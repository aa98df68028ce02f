//! The commands of Cargo in the documents: their packages, programs and tests exist.

use crate::{files, read};

/// The faults of a document: each command with a name that nothing has.
pub fn faults(path: &str, text: &str) -> Vec<String> {
    let commands = text.split('`').flat_map(|code| code.split("cargo ").skip(1));
    let faulty = commands.filter_map(|rest| Some((rest, fault(rest.lines().next()?)?)));
    faulty.map(|(rest, fault)| format!("{path}: cargo {rest}: {fault}")).collect()
}

fn fault(command: &str) -> Option<String> {
    let own = command.split(" -- ").next().unwrap_or_default();
    let words: Vec<_> = own.split_whitespace().collect();
    let is_test = words.first() == Some(&"test");
    let (mut folders, mut filters) = (Vec::new(), Vec::new());
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        let named = |name: &&str| match *word {
            "--test" => Some(format!("tests/{name}")),
            "--bench" => Some(format!("benches/{name}")),
            _ => package(name),
        };
        match *word {
            "--test" | "--bench" | "-p" => match rest.next().and_then(named) {
                Some(folder) => folders.push(folder),
                None => return Some("no such package".to_owned()),
            },
            option if option.starts_with('-') => {}
            filter if is_test => filters.push(filter),
            _ => {}
        }
    }

    let sources: Vec<_> = folders.iter().flat_map(|folder| sources(folder)).collect();
    if !folders.is_empty() && sources.is_empty() {
        return Some(format!("nothing is in {folders:?}"));
    }
    let names_tests = |part: &str| {
        sources.iter().any(|(path, text)| {
            let is_test =
                |rest: &str| rest.split('(').next().is_some_and(|name| name.contains(part));
            path.contains(part) || text.split("fn ").skip(1).any(is_test)
        })
    };
    let parts = filters.iter().flat_map(|filter| filter.split("::"));
    let unknown =
        parts.filter(|part| !part.is_empty() && *part != "…").find(|part| !names_tests(part));
    unknown.filter(|_| !folders.is_empty()).map(|part| format!("no test has {part}"))
}

/// The folder of a package.
fn package(name: &str) -> Option<String> {
    let mut manifests = files("").into_iter().filter(|path| path.ends_with("Cargo.toml"));
    let has_name = |path: &String| read(path).contains(&format!("\nname = \"{name}\""));
    let manifest = manifests.find(has_name)?;
    Some(manifest.trim_end_matches("Cargo.toml").trim_end_matches('/').to_owned())
}

/// The Rust files of a program or package, with their text.
fn sources(folder: &str) -> Vec<(String, String)> {
    let is_own =
        |path: &String| path.ends_with(".rs") && (path.starts_with(folder) || folder.is_empty());
    files("").into_iter().filter(is_own).map(|path| (path.clone(), read(&path))).collect()
}

#[test]
fn unknown_names_in_commands_are_found() {
    for (command, count) in [
        ("cargo test --test tidy unknown_names", 0),
        ("cargo test --test tidy no_such_test", 1),
        ("cargo test --test suite", 1),
        ("cargo test -p polynym-nothing", 1),
        ("cargo bench --bench cluster -- --shards 3", 0),
    ] {
        assert_eq!(faults("a.md", &format!("`{command}`")).len(), count, "{command}");
    }
}
