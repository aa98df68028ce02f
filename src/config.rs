//! The configuration: from flags, environment and file to values that are known to be good, with
//! all faults reported together. What the values are used for is decided elsewhere.
//!
//! A [`Setting`] is declared once; that gives its flag `--max-calls`, its environment variable
//! `POLYNYM_MAX_CALLS`, its key `max_calls` in the TOML file, and its help. A flag wins over the
//! environment, the environment over the file.

mod access;
mod client;
mod error;
mod file;
mod flags;
mod parse;
mod serve;
mod store;
mod telemetry;
#[cfg(test)]
mod tests;
mod top;

pub use access::{ServerAccess, ServerTls};
pub use client::{Bench, Client, Output};
pub use error::{SettingError, SettingErrors};
pub use flags::Flags;
pub use serve::Serve;
pub use store::{MongoUri, Store, StoreChoice, StoreReport};
pub use telemetry::{LogCalls, LogFormat, Telemetry};
pub use top::Top;

use std::collections::BTreeMap;
use std::fmt;

use file::File;

/// A setting.
#[derive(Debug)]
pub struct Setting {
    name: &'static str,
    /// The placeholder of the value in the help; empty for a switch.
    value: &'static str,
    default: &'static str,
    help: &'static str,
}

impl Setting {
    fn is_switch(&self) -> bool {
        self.value.is_empty()
    }
}

fn variable(name: &str) -> String {
    format!("POLYNYM_{}", name.to_uppercase().replace('-', "_"))
}

fn key(name: &str) -> String {
    name.replace('-', "_")
}

/// A set of settings and the values that they stand for.
pub trait Resolve: Sized {
    /// The settings of the set.
    fn settings() -> Vec<&'static Setting>;

    /// Reads and checks all of them. None where `values` has taken note of a fault.
    fn resolve(values: &mut Values<'_>) -> Option<Self>;
}

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The command line.
    Flag(&'static str),
    /// An environment variable.
    Environment(String),
    /// A key of the file.
    File(String, String),
    /// The default: no value was given.
    Default(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag(name) => write!(f, "flag --{name}"),
            Origin::Environment(variable) => write!(f, "environment {variable}"),
            Origin::File(path, key) => write!(f, "file {path} key {key}"),
            Origin::Default(name) => write!(f, "default of --{name}"),
        }
    }
}

/// The values as they were given, and the faults found so far.
pub struct Values<'a> {
    flags: &'a BTreeMap<&'static str, String>,
    environment: &'a dyn Fn(&str) -> Option<String>,
    file: File,
    faults: Vec<SettingError>,
}

impl<'a> Values<'a> {
    fn new(
        flags: &'a BTreeMap<&'static str, String>,
        environment: &'a dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let mut values = Self { flags, environment, file: File::default(), faults: Vec::new() };
        if let Some((path, _)) = values.outside_file(flags::CONFIG) {
            values.file = File::read(&path, &mut values.faults);
        }
        values
    }

    /// The value of `setting`, as `parse` reads it. None where that is a fault, which is taken note
    /// of.
    fn get<T>(
        &mut self,
        setting: &Setting,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let (text, origin) = self.find(setting);
        match parse(&text) {
            Ok(value) => Some(value),
            Err(message) => {
                self.faults.push(SettingError { origin: origin.to_string(), message });
                None
            }
        }
    }

    fn switch(&mut self, setting: &Setting) -> Option<bool> {
        self.get(setting, parse::switch)
    }

    /// Whether anybody gave a value.
    fn is_given(&self, setting: &Setting) -> bool {
        !matches!(self.find(setting).1, Origin::Default(_))
    }

    /// Takes note that the value of `setting` cannot be used, though it is well-formed.
    fn refuse(&mut self, setting: &Setting, message: String) {
        let origin = self.find(setting).1.to_string();
        self.faults.push(SettingError { origin, message });
    }

    fn find(&self, setting: &Setting) -> (String, Origin) {
        let name = setting.name;
        let in_file = || {
            let (path, key, value) = self.file.get(name)?;
            Some((value, Origin::File(path, key)))
        };
        let given = self.outside_file(name).or_else(in_file);
        given.unwrap_or_else(|| (setting.default.to_owned(), Origin::Default(name)))
    }

    /// An empty environment variable counts as absent: that is how orchestrators write "not set".
    fn outside_file(&self, name: &'static str) -> Option<(String, Origin)> {
        if let Some(value) = self.flags.get(name) {
            return Some((value.clone(), Origin::Flag(name)));
        }
        let variable = variable(name);
        let value = (self.environment)(&variable).filter(|value| !value.is_empty())?;
        Some((value, Origin::Environment(variable)))
    }

    /// The resolved settings, or all faults.
    fn finish<T>(self, resolved: Option<T>) -> Result<T, SettingErrors> {
        resolved.filter(|_| self.faults.is_empty()).ok_or(SettingErrors(self.faults))
    }
}
