//! The errors of a configuration.

use std::error::Error;
use std::fmt;

/// An error, and the origin of the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// Flag, environment variable, or file and key.
    pub origin: String,
    /// The error, and the correct form.
    pub message: String,
}

/// All errors of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingErrors(pub Vec<SettingError>);

impl fmt::Display for SettingErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            1 => write!(f, "the configuration has an error:")?,
            count => write!(f, "the configuration has {count} errors:")?,
        }
        self.0
            .iter()
            .try_for_each(|SettingError { origin, message }| write!(f, "\n  {origin}: {message}"))
    }
}

impl Error for SettingErrors {}
