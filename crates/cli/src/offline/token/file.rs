//! Edits of a credentials file, which preserve its comments and order.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;
use std::time::SystemTime;

use tempfile::NamedTempFile;
use toml_edit::{Array, ArrayOfTables, Datetime, DocumentMut, Item, Table, value};

use crate::failure::Failure;
use crate::files::{failure, folder};
use polynym_access::{CallerStates, Credentials, CredentialsError, RateLimits, Role, TokenHash};
use polynym_presentation::time;

/// A new `[[caller]]`.
pub struct Entry<'a> {
    pub name: &'a str,
    pub role: Role,
    pub tenants: &'a [String],
    pub hash: String,
    pub expires: Option<SystemTime>,
}

/// Reads and checks a credentials file.
pub fn read(path: &Path) -> Result<Credentials, Failure> {
    let text = fs::read_to_string(path).map_err(|error| failure(path, error))?;
    parse(&text).map_err(|error| failure(path, error))
}

fn parse(text: &str) -> Result<Credentials, CredentialsError> {
    Credentials::parse(text, RateLimits::default(), &CallerStates::default())
}

/// Edits a file atomically. A lock serializes concurrent edits.
pub fn edit<T>(
    path: &Path,
    change: impl FnOnce(&mut DocumentMut) -> Result<T, String>,
) -> Result<T, Failure> {
    // Replace the target of a link, not the link.
    let target = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = folder(target);
    let lock = File::open(folder).map_err(|error| failure(folder, error))?;
    lock.lock().map_err(|error| failure(folder, error))?;

    // Do not replace a device by a file.
    if fs::metadata(target).is_ok_and(|meta| !meta.is_file()) {
        return Err(failure(target, "not a file"));
    }
    let before = match fs::read_to_string(target) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        read => read.map_err(|error| failure(target, error))?,
    };
    parse(&before).map_err(|error| failure(target, error))?;
    let mut document: DocumentMut =
        before.parse().map_err(|error: toml_edit::TomlError| failure(target, error.message()))?;
    let outcome = change(&mut document).map_err(|error| failure(target, error))?;
    let after = document.to_string();
    parse(&after).map_err(|error| failure(target, error))?;

    replace(target, folder, &after).map_err(|error| failure(target, error))?;
    lock.sync_all().map_err(|error| failure(folder, error))?;
    Ok(outcome)
}

/// Only the owner may read a new file. An existing file keeps its owner and permissions, so that
/// the server can still read it.
fn replace(path: &Path, folder: &Path, text: &str) -> std::io::Result<()> {
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    if let Ok(old) = fs::metadata(path) {
        let new = file.as_file().metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            fchown(file.as_file(), Some(old.uid()), Some(old.gid()))?;
        }
        file.as_file().set_permissions(old.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Adds a caller's token, with the rate of the caller's other entries, which must agree.
pub fn add(document: &mut DocumentMut, entry: &Entry<'_>) -> Result<(), String> {
    let callers = callers(document)?;
    let is_same = |table: &&Table| table.get("name").and_then(Item::as_str) == Some(entry.name);
    let rate = callers.iter().find(is_same).and_then(|table| table.get("rate")).cloned();
    let mut table = Table::new();
    table["name"] = value(entry.name);
    table["role"] = value(entry.role.name());
    table["tenants"] = value(entry.tenants.iter().collect::<Array>());
    table["token"] = value(&entry.hash);
    if let Some(rate) = rate {
        table["rate"] = rate;
    }
    if let Some(time) = entry.expires {
        let text = time::second(time);
        table["expires"] = value(text.parse::<Datetime>().map_err(|error| error.to_string())?);
    }
    callers.push(table);
    Ok(())
}

/// Removes a token by its id, or all tokens of a caller. Returns their number.
pub fn remove(document: &mut DocumentMut, which: &str) -> Result<usize, String> {
    let callers = callers(document)?;
    let before = callers.len();
    let text = |table: &Table, key| table.get(key).and_then(Item::as_str).map(str::to_owned);
    let matches = |table: &Table| {
        let hash = text(table, "token").and_then(|hash| TokenHash::parse(&hash));
        text(table, "name").is_some_and(|name| name == which)
            || hash.is_some_and(|hash| hash.id() == which)
    };
    callers.retain(|table| !matches(table));

    match before - callers.len() {
        0 => Err(format!("no caller or token {which:?}: see `polynym token list`")),
        _ if callers.is_empty() => {
            Err("these are the last credentials: a server keeps using them \
            rather than reject every caller. Create another token first, or stop the server and \
            delete the file"
                .to_owned())
        }
        count => Ok(count),
    }
}

fn callers(document: &mut DocumentMut) -> Result<&mut ArrayOfTables, String> {
    let callers = document.entry("caller").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    callers.as_array_of_tables_mut().ok_or_else(|| "write each caller as [[caller]]".to_owned())
}
