//! The faults of a configuration.

use std::error::Error;
use std::fmt;

/// One fault and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// Flag, environment variable, or file and key.
    pub origin: String,
    /// The fault, and the correct form.
    pub message: String,
}

/// All faults of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingErrors(pub Vec<SettingError>);

impl fmt::Display for SettingErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            1 => write!(f, "the configuration has a fault:")?,
            count => write!(f, "the configuration has {count} faults:")?,
        }
        self.0
            .iter()
            .try_for_each(|SettingError { origin, message }| write!(f, "\n  {origin}: {message}"))
    }
}

impl Error for SettingErrors {}
