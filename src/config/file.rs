//! The TOML file: keys and values as text, with a fault for each key that nothing is known of.

use std::collections::BTreeMap;

use toml::Value;

use super::client::Bench;
use super::error::SettingError;
use super::serve::Serve;
use super::{Resolve, key};

/// The content of a configuration file; empty if no file was named.
#[derive(Debug, Default)]
pub struct File {
    path: String,
    /// By the key's canonical spelling: the key as written, and the value.
    values: BTreeMap<String, (String, String)>,
}

impl File {
    /// Reads the file at `path`; what is wrong with it as a whole goes to `faults`.
    pub fn read(path: &str, faults: &mut Vec<SettingError>) -> Self {
        let mut file = Self { path: path.to_owned(), values: BTreeMap::new() };
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
        let table =
            text.and_then(|text| text.parse::<toml::Table>().map_err(|error| error.to_string()));
        match table {
            Ok(table) => file.take(table, faults),
            Err(error) => faults.push(SettingError {
                origin: format!("file {path}"),
                message: error.trim_end().to_owned(),
            }),
        }

        file
    }

    fn take(&mut self, table: toml::Table, faults: &mut Vec<SettingError>) {
        let known = known_keys();
        for (written, value) in table {
            if let Err(message) = self.take_one(&known, &written, value) {
                faults.push(SettingError {
                    origin: format!("file {} key {written}", self.path),
                    message,
                });
            }
        }
    }

    /// Keys may have hyphens, as the flags do, in place of underscores.
    fn take_one(&mut self, known: &[String], written: &str, value: Value) -> Result<(), String> {
        let key = key(written);
        if !known.contains(&key) {
            return Err(unknown(known, &key));
        }
        let value = (written.to_owned(), text(value)?);
        match self.values.insert(key, value) {
            Some((other, _)) => Err(format!("is given as {other} too")),
            None => Ok(()),
        }
    }

    /// The file's path, the key as written, and the value of the setting `name`.
    pub fn get(&self, name: &str) -> Option<(String, String, String)> {
        let (written, value) = self.values.get(&key(name))?;
        Some((self.path.clone(), written.clone(), value.clone()))
    }
}

/// One file serves the server and the clients, so it may hold what another command reads.
fn known_keys() -> Vec<String> {
    let settings = Serve::settings().into_iter().chain(Bench::settings());
    settings.map(|setting| key(setting.name)).collect()
}

fn unknown(known: &[String], key: &str) -> String {
    let likeness = |candidate: &&String| (strsim::jaro_winkler(candidate, key) * 1e6) as u32;
    match known.iter().max_by_key(likeness).filter(|nearest| likeness(nearest) > 800_000) {
        Some(nearest) => format!("there is no such key; did you mean {nearest}?"),
        None => format!("there is no such key; there are {}", known.join(", ")),
    }
}

fn text(value: Value) -> Result<String, String> {
    Ok(match value {
        Value::String(text) => text,
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(yes) => yes.to_string(),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => {
            return Err("write the value as a text, a number, or true or false".to_owned());
        }
    })
}
