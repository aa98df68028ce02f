//! Changes of a credentials file, which keep its comments and its order.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;
use std::time::SystemTime;

use tempfile::NamedTempFile;
use toml_edit::{Array, ArrayOfTables, Datetime, DocumentMut, Item, Table, value};

use crate::access::{CallerStates, Credentials, CredentialsError, RateLimits, Role, TokenHash};
use crate::cli::failure::Failure;
use crate::cli::files::{fault, folder};

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
    let text = fs::read_to_string(path).map_err(|error| fault(path, error))?;
    parse(&text).map_err(|error| fault(path, error))
}

fn parse(text: &str) -> Result<Credentials, CredentialsError> {
    Credentials::parse(text, RateLimits::default(), &CallerStates::default())
}

/// Changes a file. Others see the file of before or the new one, and never a part. Changes at the
/// same time wait for one another.
pub fn edit<T>(
    path: &Path,
    change: impl FnOnce(&mut DocumentMut) -> Result<T, String>,
) -> Result<T, Failure> {
    // A link stays, and its target is replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = folder(path);
    let lock = File::open(folder).map_err(|error| fault(folder, error))?;
    lock.lock().map_err(|error| fault(folder, error))?;

    // A device would be replaced by a file.
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return Err(fault(path, "it is not a file"));
    }
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        text => text.map_err(|error| fault(path, error))?,
    };
    parse(&text).map_err(|error| fault(path, error))?;
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| fault(path, error.message()))?;
    let outcome = change(&mut document).map_err(|error| fault(path, error))?;
    let text = document.to_string();
    parse(&text).map_err(|error| fault(path, error))?;

    replace(path, folder, &text).map_err(|error| fault(path, error))?;
    lock.sync_all().map_err(|error| fault(folder, error))?;
    Ok(outcome)
}

/// A new file may be read by its owner alone; another one keeps its owner and its permissions, so
/// that a server that runs as this owner can read it.
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

/// Adds a caller's token. It has the rate of the caller's other entries, which must agree.
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
        let text = humantime::format_rfc3339_seconds(time).to_string();
        table["expires"] = value(text.parse::<Datetime>().map_err(|error| error.to_string())?);
    }
    callers.push(table);
    Ok(())
}

/// Removes a token by its id, or all tokens of a caller. Returns how many.
pub fn remove(document: &mut DocumentMut, which: &str) -> Result<usize, String> {
    let callers = callers(document)?;
    let before = callers.len();
    let text = |table: &Table, key| table.get(key).and_then(Item::as_str).map(str::to_owned);
    let is_meant = |table: &Table| {
        let hash = text(table, "token").and_then(|hash| TokenHash::parse(&hash));
        text(table, "name").is_some_and(|name| name == which)
            || hash.is_some_and(|hash| hash.id() == which)
    };
    callers.retain(|table| !is_meant(table));

    match before - callers.len() {
        0 => Err(format!(
            "there is no caller and no token {which:?}: `polynym token list` shows \
            those that there are"
        )),
        _ if callers.is_empty() => Err("these are the last credentials, and a server would keep \
            them in use rather than refuse everybody: create another token first, or stop the \
            server and delete the file"
            .to_owned()),
        count => Ok(count),
    }
}

fn callers(document: &mut DocumentMut) -> Result<&mut ArrayOfTables, String> {
    let callers = document.entry("caller").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    callers.as_array_of_tables_mut().ok_or_else(|| "write each caller as [[caller]]".to_owned())
}
