//! Versions of the rules: each parses what a caller typed in its own way.

use std::fmt;

use super::{Identifier, RULES_VERSION, RawIdentifier, Rejection};

/// One version of the rules.
#[derive(Clone, Copy)]
pub struct Rules {
    version: u32,
    parse: Parse,
}

/// How a version parses.
pub type Parse = fn(RawIdentifier<'_>) -> Result<Identifier, Rejection>;

impl Rules {
    /// The version of a stored identity that names none. This number never changes: stores are full of such identities.
    pub const UNNAMED: u32 = 1;

    /// The rules that this build applies.
    pub const PRESENT: Self = Self::new(RULES_VERSION, Identifier::parse);

    /// A version and how it parses.
    pub const fn new(version: u32, parse: Parse) -> Self {
        Self { version, parse }
    }

    /// The number that is kept beside each identifier.
    pub const fn version(self) -> u32 {
        self.version
    }

    /// Parses what a caller typed into its canonical form under this version.
    ///
    /// # Errors
    /// A [`Rejection`] that names the rule that was broken.
    pub fn parse(self, raw: RawIdentifier<'_>) -> Result<Identifier, Rejection> {
        (self.parse)(raw)
    }
}

/// Two versions are the same where their numbers are.
impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self.version == other.version
    }
}

impl Eq for Rules {}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rules({})", self.version)
    }
}
