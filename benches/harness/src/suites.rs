//! The suites in their order.

mod embedded;
mod mongodb;
mod postgresql;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Fallible;
use crate::Options;
use crate::Suite;
use crate::postgres::Programs;
use crate::root;

pub fn run(suite: Suite, options: &Options) -> Fallible<()> {
    let polynym = polynym(options.polynym.as_deref(), &options.profile)?;
    let includes = |one: Suite| suite == one || suite == Suite::All;

    if includes(Suite::Embedded) {
        embedded::run(options, &polynym)?;
    }
    if includes(Suite::Postgresql) {
        match Programs::find(options.postgresql.as_deref()) {
            Ok(programs) => postgresql::run(options, &polynym, &programs)?,
            Err(error) => skip(suite, error)?,
        }
    }
    if includes(Suite::Mongodb) {
        match mongod(options) {
            Ok(mongod) => mongodb::run(options, &polynym, &mongod)?,
            Err(error) => skip(suite, error)?,
        }
    }
    Ok(())
}

/// Fails unless all suites were asked for.
fn skip(suite: Suite, error: Box<dyn std::error::Error + Send + Sync>) -> Fallible<()> {
    if suite != Suite::All {
        return Err(error);
    }
    eprintln!("skipped: {error}");
    Ok(())
}

/// Returns the program to measure, which is built first unless it was given.
pub fn polynym(given: Option<&Path>, profile: &str) -> Fallible<PathBuf> {
    if let Some(polynym) = given {
        return Ok(polynym.canonicalize()?);
    }
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--locked", "--bin", "polynym", "--profile", profile]);
    if !cargo.current_dir(root()).status()?.success() {
        return Err("polynym does not build".into());
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(root().join(target).join(folder).join("polynym"))
}

/// Returns the program of MongoDB's server.
fn mongod(options: &Options) -> Fallible<PathBuf> {
    let named = || env::var_os("MONGOD_BIN").map(PathBuf::from);
    let found = options.mongod.clone().or_else(named).or_else(|| on_path("mongod"));
    let missing = "no mongod on the PATH: name one with --mongod or MONGOD_BIN";
    Ok(found.ok_or(missing)?.canonicalize()?)
}

/// Returns a program that is on the PATH.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| Path::is_file(file))
}
