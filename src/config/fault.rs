//! The faults of a configuration.

use std::error::Error;
use std::fmt;

/// One fault and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Flag, environment variable, or file and key.
    pub origin: String,
    /// The fault, and the correct form.
    pub message: String,
}

/// All faults of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            1 => write!(f, "the configuration has a fault:")?,
            count => write!(f, "the configuration has {count} faults:")?,
        }
        self.0.iter().try_for_each(|Fault { origin, message }| write!(f, "\n  {origin}: {message}"))
    }
}

impl Error for Faults {}
