//! The TOML file: keys and values as text, with an error for each unknown key.

use std::collections::BTreeMap;

use toml::Value;

use super::error::SettingError;

/// The content of a configuration file; empty if no file was named.
#[derive(Debug, Default)]
pub struct File {
    path: String,
    /// By the key's canonical spelling: the key as written, and the value.
    values: BTreeMap<String, (String, String)>,
}

impl File {
    /// Reads the file at `path`, and adds its errors to `errors`.
    pub fn read(path: &str, known: &[&str], errors: &mut Vec<SettingError>) -> Self {
        let mut file = Self { path: path.to_owned(), values: BTreeMap::new() };
        let table = std::fs::read_to_string(path)
            .map_err(|error| error.to_string())
            .and_then(|text| text.parse::<toml::Table>().map_err(|error| error.to_string()));
        match table {
            Ok(table) => file.insert_all(table, known, errors),
            Err(error) => errors.push(SettingError {
                origin: format!("file {path}"),
                message: error.trim_end().to_owned(),
            }),
        }

        file
    }

    fn insert_all(&mut self, table: toml::Table, known: &[&str], errors: &mut Vec<SettingError>) {
        for (written, value) in table {
            if let Err(message) = self.insert(known, &written, value) {
                errors.push(SettingError { origin: self.origin(&written), message });
            }
        }
    }

    /// Keys may have hyphens, as flags do, instead of underscores.
    fn insert(&mut self, known: &[&str], written: &str, value: Value) -> Result<(), String> {
        let key = written.replace('-', "_");
        if !known.contains(&key.as_str()) {
            return Err(unknown(known, &key));
        }
        let value = (written.to_owned(), text(value)?);
        match self.values.insert(key, value) {
            Some((other, _)) => Err(format!("also given as {other}")),
            None => Ok(()),
        }
    }

    /// The value of the setting `key`, with its origin.
    pub fn get(&self, key: &str) -> Option<(String, String)> {
        let (written, value) = self.values.get(key)?;
        Some((value.clone(), self.origin(written)))
    }

    fn origin(&self, written: &str) -> String {
        format!("file {} key {written}", self.path)
    }
}

/// The error of an unknown key, with the known key that is most like it.
pub fn unknown(known: &[&str], key: &str) -> String {
    let likeness = |candidate: &&&str| (strsim::jaro_winkler(candidate, key) * 1e6) as u32;
    match known.iter().max_by_key(likeness).filter(|nearest| likeness(nearest) > 800_000) {
        Some(nearest) => format!("unknown key; did you mean {nearest}?"),
        None => format!("unknown key; known keys are {}", known.join(", ")),
    }
}

fn text(value: Value) -> Result<String, String> {
    Ok(match value {
        Value::String(text) => text,
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(yes) => yes.to_string(),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => {
            return Err("the value must be a string, a number, or true or false".to_owned());
        }
    })
}
