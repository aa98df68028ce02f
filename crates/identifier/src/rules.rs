//! Versions of the rules.

use std::fmt;

use super::canonical::{Identifier, Normalization};
use super::kind::Kind;
use super::phone;
use super::raw::RawIdentifier;
use super::rejection::Rejection;

/// The current version of the rules. Stores keep it with each identifier, not in its key, to find
/// identifiers of older versions.
pub const RULES_VERSION: u32 = 4;

/// The version of the metadata of libphonenumber, by which phone numbers are valid. Later metadata
/// may refuse numbers that stores have.
pub const PHONE_METADATA: &str = "9.0.33";

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

    /// The oldest version that this build knows: of a store that has not moved to the current one.
    pub const OLDEST: u32 = RULES_VERSION;

    /// The current version.
    pub const PRESENT: Self = Self::new(RULES_VERSION, Identifier::parse, Identifier::normalize);

    /// The rules of a version; none if this build does not know it.
    pub fn known(version: u32) -> Option<Self> {
        Self::KNOWN.into_iter().find(|rules| rules.version == version)
    }

    /// The versions before another, the newest first.
    pub fn known_before(rules: Self) -> impl Iterator<Item = Self> {
        Self::KNOWN.into_iter().rev().filter(move |known| known.version < rules.version)
    }

    /// All versions, oldest first. The next one follows the current one here, until all stores have
    /// moved to it.
    const KNOWN: [Self; 1] = [Self::PRESENT];

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

    /// Whether an identifier is in its canonical form by these rules.
    pub fn has(self, identifier: &Identifier) -> bool {
        self.parse(identifier.as_typed()).as_ref() == Ok(identifier)
    }

    /// The other forms under which a store may have an identifier: by earlier versions of the
    /// rules, newest first. A phone number in international form may also be stored as it is, if
    /// these rules reject it: earlier numbering plans may have had it. Handles have one form by all
    /// versions.
    pub fn earlier_forms(self, raw: RawIdentifier<'_>) -> Vec<Identifier> {
        if raw.kind() == Kind::Handle {
            return Vec::new();
        }
        let present = self.parse(raw).ok();
        let parsed = Self::known_before(self).filter_map(|rules| rules.parse(raw).ok());
        let plain = match raw {
            RawIdentifier::Phone { number, .. } if present.is_none() => phone::plain_e164(number),
            _ => None,
        };
        let plain = plain.map(|number| Identifier::from_canonical(Kind::Phone, number));
        let mut forms = Vec::new();
        for form in parsed.chain(plain) {
            if present.as_ref() != Some(&form) && !forms.contains(&form) {
                forms.push(form);
            }
        }
        forms
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
