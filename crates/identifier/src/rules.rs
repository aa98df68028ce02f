//! Versions of the rules.

use std::fmt;

use super::canonical::{Identifier, Normalization};
use super::raw::RawIdentifier;
use super::rejection::Rejection;

/// The current version of the rules. Stores keep it with each identifier, not in its key, to find
/// identifiers of older versions.
pub const RULES_VERSION: u32 = 2;

/// One version of the rules.
#[derive(Clone, Copy)]
pub struct Rules {
    version: u32,
    parse: Parse,
    normalize: Normalize,
}

/// The parser of a version.
pub type Parse = fn(RawIdentifier<'_>) -> Result<Identifier, Rejection>;

/// The parser of a version that also reports changes.
pub type Normalize = fn(RawIdentifier<'_>) -> Result<Normalization, Rejection>;

impl Rules {
    /// The version of stored identities that name none. It must never change.
    pub const UNNAMED: u32 = 1;

    /// The first version. Older stores use it until they are upgraded.
    pub const FIRST: Self = Self::new(1, Identifier::parse_first, Identifier::normalize_first);

    /// The current version.
    pub const PRESENT: Self = Self::new(RULES_VERSION, Identifier::parse, Identifier::normalize);

    /// The rules of a version; none if this build does not know it.
    pub fn known(version: u32) -> Option<Self> {
        [Self::FIRST, Self::PRESENT].into_iter().find(|rules| rules.version == version)
    }

    /// A version with its parsers.
    pub const fn new(version: u32, parse: Parse, normalize: Normalize) -> Self {
        Self { version, parse, normalize }
    }

    /// The version number, which is stored with each identifier.
    pub const fn version(self) -> u32 {
        self.version
    }

    /// Parses typed text into its canonical form.
    ///
    /// # Errors
    /// The text breaks a rule.
    pub fn parse(self, raw: RawIdentifier<'_>) -> Result<Identifier, Rejection> {
        (self.parse)(raw)
    }

    /// Parses like [`Rules::parse`], and reports the changes of each rule.
    ///
    /// # Errors
    /// The text breaks a rule.
    pub fn normalize(self, raw: RawIdentifier<'_>) -> Result<Normalization, Rejection> {
        (self.normalize)(raw)
    }
}

/// Versions are equal if their numbers are.
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
