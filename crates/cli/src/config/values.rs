//! The search for the values of settings: flags, environment variables, the file, defaults.

use std::collections::BTreeMap;

use super::error::{SettingError, SettingErrors};
use super::file::File;
use super::parse;
use super::setting::Setting;

/// The setting that names the file. All sets have it, and the file does not.
pub const CONFIG: Setting = Setting {
    key: "config",
    placeholder: "FILE",
    default: "",
    doc: "TOML file with any of these settings",
};

/// A set of settings, which [`settings!`](super::settings) declares.
pub trait Settings: Sized {
    /// The declarations of the set and those that it contains.
    fn all() -> Vec<&'static Setting>;

    /// Parses all values. Returns none if `values` recorded an error.
    fn parse(values: &mut Values<'_>) -> Option<Self>;
}

/// The given values, and the errors so far.
pub struct Values<'a> {
    flags: &'a BTreeMap<&'static str, String>,
    environment: &'a dyn Fn(&str) -> Option<String>,
    file: File,
    /// By key.
    defaults: BTreeMap<&'static str, &'static str>,
    errors: Vec<SettingError>,
}

impl<'a> Values<'a> {
    pub(super) fn new(
        settings: Vec<&'static Setting>,
        flags: &'a BTreeMap<&'static str, String>,
        environment: &'a dyn Fn(&str) -> Option<String>,
        known_keys: &[&str],
    ) -> Self {
        let defaults = settings.into_iter().map(|one| (one.key, one.default)).collect();
        let (file, errors) = (File::default(), Vec::new());
        let mut values = Self { flags, environment, file, defaults, errors };
        if let Some((path, _)) = values.outside_file(&CONFIG) {
            values.file = File::read(&path, known_keys, &mut values.errors);
        }
        values
    }

    /// The value of `setting`, parsed by `parse`. Records an error.
    pub fn get<T>(
        &mut self,
        setting: &Setting,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        match parse(&self.text(setting)) {
            Ok(value) => Some(value),
            Err(message) => {
                self.reject(setting, message);
                None
            }
        }
    }

    /// Whether a switch is on. Records no error.
    pub fn is_on(&self, switch: &Setting) -> bool {
        parse::switch(&self.text(switch)) == Ok(true)
    }

    /// Whether the environment has this variable, whatever program reads it.
    pub fn has_variable(&self, name: &str) -> bool {
        (self.environment)(name).is_some_and(|value| !value.is_empty())
    }

    /// Whether a value was given.
    pub fn is_given(&self, setting: &Setting) -> bool {
        self.given(setting).is_some()
    }

    /// Replaces the default of a setting whose value is not parsed yet.
    pub fn set_default(&mut self, setting: &'static Setting, default: &'static str) {
        self.defaults.insert(setting.key, default);
    }

    /// Records an error of a value, with its origin.
    pub fn reject(&mut self, setting: &Setting, message: impl Into<String>) {
        let default = || format!("default of --{}", setting.flag());
        let origin = self.given(setting).map_or_else(default, |(_, origin)| origin);
        self.errors.push(SettingError { origin, message: message.into() });
    }

    /// Rejects a certificate without its key, and a key without its certificate.
    pub fn reject_half<T>(
        &mut self,
        (certificate, certificate_file): (&Setting, &Option<T>),
        (key, key_file): (&Setting, &Option<T>),
    ) {
        match (certificate_file, key_file) {
            (Some(_), None) => {
                let message = format!("the certificate's key is missing: add --{}", key.flag());
                self.reject(certificate, message);
            }
            (None, Some(_)) => {
                let flag = certificate.flag();
                self.reject(key, format!("the key's certificate is missing: add --{flag}"));
            }
            _ => {}
        }
    }

    fn text(&self, setting: &Setting) -> String {
        let default = || self.defaults.get(setting.key).unwrap_or(&setting.default).to_string();
        self.given(setting).map_or_else(default, |(text, _)| text)
    }

    /// The value that was given, with its origin.
    fn given(&self, setting: &Setting) -> Option<(String, String)> {
        self.outside_file(setting).or_else(|| self.file.get(setting.key))
    }

    /// The value of a flag or an environment variable, with its origin. An empty variable is
    /// absent, since orchestrators cannot unset one.
    fn outside_file(&self, setting: &Setting) -> Option<(String, String)> {
        if let Some(value) = self.flags.get(setting.key) {
            return Some((value.clone(), format!("flag --{}", setting.flag())));
        }
        let variable = setting.variable();
        let value = (self.environment)(&variable).filter(|value| !value.is_empty())?;
        Some((value, format!("environment {variable}")))
    }

    /// The parsed settings, or all errors.
    pub(super) fn parse<S: Settings>(mut self) -> Result<S, SettingErrors> {
        let parsed = S::parse(&mut self);
        parsed.filter(|_| self.errors.is_empty()).ok_or(SettingErrors(self.errors))
    }
}
