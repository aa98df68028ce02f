//! Versions of the rules: each parses what a caller typed in its own way.

use std::fmt;

use super::rejection::Rejection;
use super::{Identifier, Normalization, RULES_VERSION, RawIdentifier};

/// One version of the rules.
#[derive(Clone, Copy)]
pub struct Rules {
    version: u32,
    parse: Parse,
    normalize: Normalize,
}

/// The parser of a version.
pub type Parse = fn(RawIdentifier<'_>) -> Result<Identifier, Rejection>;

/// The parser of a version that also reports its changes.
pub type Normalize = fn(RawIdentifier<'_>) -> Result<Normalization, Rejection>;

impl Rules {
    /// The version of a stored identity that names none. This number never changes: stores are full
    /// of such identities.
    pub const UNNAMED: u32 = 1;

    /// The first rules. A store that has them is served by them until it is upgraded.
    pub const FIRST: Self = Self::new(1, Identifier::parse_first, Identifier::normalize_first);

    /// The rules that this build applies.
    pub const PRESENT: Self = Self::new(RULES_VERSION, Identifier::parse, Identifier::normalize);

    /// The rules of a version; none where this build does not know it.
    pub fn known(version: u32) -> Option<Self> {
        [Self::FIRST, Self::PRESENT].into_iter().find(|rules| rules.version == version)
    }

    /// A version and how it parses.
    pub const fn new(version: u32, parse: Parse, normalize: Normalize) -> Self {
        Self { version, parse, normalize }
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

    /// Parses like [`Rules::parse`] and reports what each rule changed.
    ///
    /// # Errors
    /// The same as those of [`Rules::parse`].
    pub fn normalize(self, raw: RawIdentifier<'_>) -> Result<Normalization, Rejection> {
        (self.normalize)(raw)
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
