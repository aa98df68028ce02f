//! Identifiers as typed.

use std::fmt;

use super::kind::Kind;

/// The maximum input in bytes, which bounds the cost of a hostile value. Canonical forms are far
/// shorter.
pub const MAX_INPUT_BYTES: usize = 4096;

/// An unchecked identifier, as typed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RawIdentifier<'a> {
    /// An email address.
    Email(&'a str),
    /// A handle, with or without a leading `@`.
    Handle(&'a str),
    /// A telephone number.
    Phone {
        /// The number, in any usual notation.
        number: &'a str,
        /// The ISO 3166 alpha-2 code of the country of a national number; may be empty for a number
        /// in international form.
        region: &'a str,
    },
    /// An account at another provider.
    Social {
        /// The provider's short name, or the URL of its issuer, which may be percent-encoded.
        provider: &'a str,
        /// The account's id at the provider.
        subject: &'a str,
    },
    /// The address of a profile page.
    Url(&'a str),
}

impl RawIdentifier<'_> {
    /// The kind.
    pub const fn kind(&self) -> Kind {
        match self {
            RawIdentifier::Email(_) => Kind::Email,
            RawIdentifier::Handle(_) => Kind::Handle,
            RawIdentifier::Phone { .. } => Kind::Phone,
            RawIdentifier::Social { .. } => Kind::Social,
            RawIdentifier::Url(_) => Kind::Url,
        }
    }

    /// The recognisable part, as typed: for a social account the subject.
    pub const fn typed(&self) -> &str {
        match self {
            RawIdentifier::Email(v) | RawIdentifier::Handle(v) | RawIdentifier::Url(v) => v,
            RawIdentifier::Phone { number, .. } => number,
            RawIdentifier::Social { subject, .. } => subject,
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            RawIdentifier::Email(v) | RawIdentifier::Handle(v) | RawIdentifier::Url(v) => v.len(),
            RawIdentifier::Phone { number, region } => number.len() + region.len(),
            RawIdentifier::Social { provider, subject } => provider.len() + subject.len(),
        }
    }
}

/// Shows only the kind: values are personal data.
impl fmt::Debug for RawIdentifier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawIdentifier({}, …)", self.kind())
    }
}
