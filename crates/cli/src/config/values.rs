//! The search for the values of settings: flags, environment variables, the file, defaults.

use std::collections::BTreeMap;
use std::fmt;

use super::error::{SettingError, SettingErrors};
use super::file::File;
use super::parse;
use super::setting::{Setting, variable};

/// The flag that names the file. All sets have it, and the file does not.
pub const CONFIG: &str = "config";

/// A set of settings, parsed from their values.
pub trait Resolve: Sized {
    /// The settings of the set.
    fn settings() -> Vec<&'static Setting>;

    /// Parses all of them. Returns none if `values` recorded an error.
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

/// The given values, and the errors so far.
pub struct Values<'a> {
    flags: &'a BTreeMap<&'static str, String>,
    environment: &'a dyn Fn(&str) -> Option<String>,
    file: File,
    /// The defaults that differ from those of the settings, by name.
    defaults: BTreeMap<&'static str, &'static str>,
    errors: Vec<SettingError>,
}

impl<'a> Values<'a> {
    pub(super) fn new(
        flags: &'a BTreeMap<&'static str, String>,
        environment: &'a dyn Fn(&str) -> Option<String>,
        known_keys: &[String],
    ) -> Self {
        let mut values = Self {
            flags,
            environment,
            file: File::default(),
            defaults: BTreeMap::new(),
            errors: Vec::new(),
        };
        if let Some((path, _)) = values.outside_file(CONFIG) {
            values.file = File::read(&path, known_keys, &mut values.errors);
        }
        values
    }

    /// The value of `setting`, parsed by `parse`. Records an error.
    pub(super) fn get<T>(
        &mut self,
        setting: &Setting,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let (text, origin) = self.find(setting);
        match parse(&text) {
            Ok(value) => Some(value),
            Err(message) => {
                self.errors.push(SettingError { origin: origin.to_string(), message });
                None
            }
        }
    }

    pub(super) fn switch(&mut self, setting: &Setting) -> Option<bool> {
        self.get(setting, parse::switch)
    }

    /// Replaces the defaults of settings whose values are parsed from here on.
    pub(super) fn set_defaults(&mut self, defaults: &[(&Setting, &'static str)]) {
        self.defaults.extend(defaults.iter().map(|(setting, default)| (setting.name, *default)));
    }

    /// Whether a value was given.
    pub(super) fn is_given(&self, setting: &Setting) -> bool {
        !matches!(self.find(setting).1, Origin::Default(_))
    }

    /// Records an error of a well-formed value.
    pub(super) fn reject(&mut self, setting: &Setting, message: String) {
        let origin = self.find(setting).1.to_string();
        self.errors.push(SettingError { origin, message });
    }

    fn find(&self, setting: &Setting) -> (String, Origin) {
        let name = setting.name;
        if let Some(found) = self.outside_file(name) {
            return found;
        }
        match self.file.get(name) {
            Some((path, key, value)) => (value, Origin::File(path, key)),
            None => {
                let default = self.defaults.get(name).unwrap_or(&setting.default);
                ((*default).to_owned(), Origin::Default(name))
            }
        }
    }

    /// The value of a flag or an environment variable. An empty variable is absent, since
    /// orchestrators cannot unset one.
    fn outside_file(&self, name: &'static str) -> Option<(String, Origin)> {
        if let Some(value) = self.flags.get(name) {
            return Some((value.clone(), Origin::Flag(name)));
        }
        let variable = variable(name);
        let value = (self.environment)(&variable).filter(|value| !value.is_empty())?;
        Some((value, Origin::Environment(variable)))
    }

    /// The resolved settings, or all errors.
    pub(super) fn finish<T>(self, resolved: Option<T>) -> Result<T, SettingErrors> {
        resolved.filter(|_| self.errors.is_empty()).ok_or(SettingErrors(self.errors))
    }
}
