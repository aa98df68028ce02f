//! The unit, its example and the container file. `scripts/check-deploy` checks the rest.

use std::fs;
use std::path::Path;
use std::time::Duration;

use clap::Parser;
use polynym::arguments::{Arguments, Command};
use polynym::settings::{LogFormat, Serve, StoreChoice};

/// The time to close a store.
const CLOSING: Duration = Duration::from_secs(20);
/// The default of `--drain-delay` under a service manager.
const DRAIN_DELAY: Duration = Duration::from_secs(5);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn load(arguments: &[&str]) -> Serve {
    let Command::Serve(flags) = Arguments::try_parse_from(arguments).unwrap().command else {
        panic!("{arguments:?} does not serve")
    };
    flags.load().unwrap()
}

#[test]
fn the_unit_starts_the_server_with_the_example() {
    let unit = read("deploy/polynym.service");
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let example = root().join("deploy/polynym.example.toml").display().to_string();
    let words: Vec<_> =
        line.split(' ').map(|word| if word.ends_with(".toml") { &example } else { word }).collect();
    assert!(words.contains(&example.as_str()), "{line}");

    let settings = load(&words);
    let folder = unit.lines().find_map(|line| line.strip_prefix("StateDirectory=")).unwrap();
    assert_eq!(settings.location.store, StoreChoice::Embedded(Path::new("/var/lib").join(folder)));
    assert_eq!(settings.telemetry.log_format, LogFormat::Json);

    let stop = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec=")).unwrap();
    assert!(Duration::from_secs(stop.parse().unwrap()) > DRAIN_DELAY + settings.drain + CLOSING);
}

#[test]
fn commented_settings_of_the_example_are_the_defaults() {
    let example = read("deploy/polynym.example.toml");
    let is_setting =
        |line: &&str| line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
    let commented = example.lines().filter_map(|line| line.strip_prefix("# ")).filter(is_setting);
    // These defaults depend on the machine and the environment.
    let differ = ["threads", "cache", "drain_delay"];
    let is_fixed = |line: &&str| !differ.iter().any(|key| line.starts_with(&format!("{key} =")));
    let defaults: Vec<_> = commented.filter(is_fixed).collect();
    assert!(defaults.len() > 10, "{defaults:?}");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("polynym.toml");
    fs::write(&file, defaults.join("\n")).unwrap();
    let spelled_out = load(&["polynym", "serve", "--config", file.to_str().unwrap()]);
    assert_eq!(spelled_out, load(&["polynym", "serve"]));
}

/// The container file copies everything that `.dockerignore` does not exclude.
#[test]
fn the_image_is_built_from_all_members() {
    let text = read("deploy/Containerfile");
    assert!(text.contains("\nCOPY . .\n"), "{text}");
    let ignore = read(".dockerignore");
    assert!(ignore.lines().any(|line| line == "*"), "{ignore}");
    let sources: Vec<_> = ignore.lines().filter_map(|line| line.strip_prefix("!/")).collect();
    assert!(sources.len() >= 6, "{sources:?}");

    for source in &sources {
        assert!(root().join(source).exists(), "{source}");
    }
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let members = manifest["workspace"]["members"].as_array().unwrap();
    let targets = ["bin", "test", "bench"].iter().filter_map(|kind| manifest.get(*kind));
    let paths = targets.flat_map(|all| all.as_array().unwrap()).filter_map(|one| one.get("path"));
    for value in members.iter().chain(paths) {
        let path = Path::new(value.as_str().unwrap());
        let is_copied = sources.iter().any(|source| path.starts_with(source));
        assert!(is_copied, "{} is not copied", path.display());
    }

    let rust = read("Cargo.toml")
        .lines()
        .find_map(|line| Some(line.strip_prefix("rust-version = ")?.to_owned()))
        .unwrap();
    assert!(text.contains(&format!("/rust:{}-slim", rust.trim_matches('"'))), "{rust}");
}
