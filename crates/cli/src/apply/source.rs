//! The files that `polynym apply` reads.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::node::{Fault, Position};
use crate::failure::Failure;
use crate::files;
use crate::output::printable;

/// The maximum bytes of all files together.
pub const MAX_BYTES: usize = 8 << 20;
/// The maximum number of files.
const MAX_FILES: usize = 1_000;
/// The maximum number of faults that are shown.
const MAX_SHOWN: usize = 100;
/// The endings of the files of a directory.
const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];

/// A file.
#[derive(Debug)]
pub struct Source {
    /// Its name in messages.
    pub name: String,
    /// Its content; empty if it cannot be read.
    pub text: String,
    /// Whether it could be read.
    pub is_read: bool,
}

/// Reads files, and the files of directories. Faults are added to `faults`; the file of a fault is
/// an index of the result.
pub fn read(paths: &[PathBuf], faults: &mut Vec<Fault>) -> Vec<Source> {
    let mut sources = Vec::new();
    let mut rest = MAX_BYTES;
    for path in paths {
        // A directory that cannot be listed is a file that cannot be read.
        let listed = list(path);
        let found = listed.as_ref().map_or_else(|_| vec![path.clone()], Vec::clone);
        for path in found {
            let read = listed.as_ref().map_err(String::clone).and_then(|_| content(&path, rest));
            let is_read = read.is_ok();
            let text = read.unwrap_or_else(|message| {
                let position = Position { file: sources.len(), ..Position::default() };
                faults.push(Fault::new(position, message));
                String::new()
            });
            rest = rest.saturating_sub(text.len());
            sources.push(Source { name: path.display().to_string(), text, is_read });
        }
    }
    sources
}

/// The failure of files with faults, one line for each, by file, line and column.
pub fn failure(sources: &[Source], mut faults: Vec<Fault>) -> Failure {
    faults.sort();
    faults.dedup();
    let line = |Fault { position, message }: &Fault| {
        let name = sources.get(position.file).map_or("", |source| source.name.as_str());
        let line = match position.line {
            0 => format!("{name}: {message}"),
            _ => format!("{name}:{}:{}: {message}", position.line, position.column),
        };
        printable(&line).into_owned()
    };
    let mut lines: Vec<_> = faults.iter().take(MAX_SHOWN).map(line).collect();
    if faults.len() > MAX_SHOWN {
        lines.push(format!("and {} more", faults.len() - MAX_SHOWN));
    }
    Failure::Other(format!("{}\nnothing was changed", lines.join("\nerror: ")))
}

/// A file itself, or the files of a directory by name. Those that begin with a dot are skipped:
/// volumes of Kubernetes have folders of such names.
fn list(path: &Path) -> Result<Vec<PathBuf>, String> {
    if path.as_os_str() == "-" || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let is_own = |path: &PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        ENDINGS.contains(&ending) && !name.starts_with('.') && !path.is_dir()
    };
    let entries = fs::read_dir(path).map_err(|error| error.to_string())?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let all: Vec<_> = paths.collect::<io::Result<_>>().map_err(|error| error.to_string())?;
    let mut found: Vec<_> = all.into_iter().filter(is_own).collect();
    found.sort();
    match found.len() {
        0 => Err("the directory has no file that ends with .yaml, .yml or .json".to_owned()),
        count if count > MAX_FILES => Err(format!("{count} files; at most {MAX_FILES}")),
        _ => Ok(found),
    }
}

/// The content of a file of at most `max` bytes.
fn content(path: &Path, max: usize) -> Result<String, String> {
    let file = files::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() > max {
        let megabytes = MAX_BYTES >> 20;
        return Err(format!("the files have more than {megabytes} MiB: apply them in parts"));
    }
    String::from_utf8(bytes).map_err(|_| "the file is not UTF-8".to_owned())
}
