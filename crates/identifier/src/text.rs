//! The text form: kind, colon, value. For command lines, and for logs that show values on purpose.

pub mod pasted;

use std::fmt;
use std::str::FromStr;

use super::canonical::Identifier;
use super::kind::Kind;
use super::raw::RawIdentifier;
use super::social;

/// Text without a kind of identifier, or without a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// No colon after the kind.
    #[error("write an identifier as kind:value, for example email:joe@example.com")]
    NoKind,
    /// The word before the colon is not a kind.
    #[error("the kind of an identifier must be email, handle, phone, social or url")]
    UnknownKind,
    /// A social identifier without a slash.
    #[error("write a social identifier as social:provider/subject")]
    NoSubject,
    /// An issuer's URL that is not percent-encoded.
    #[error("write an issuer percent-encoded: social:https%3A%2F%2Faccounts.google.com/42")]
    PlainIssuer,
}

impl FromStr for Kind {
    type Err = TextError;

    fn from_str(word: &str) -> Result<Self, TextError> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == word).ok_or(TextError::UnknownKind)
    }
}

impl<'a> RawIdentifier<'a> {
    /// Parses the text form. The kind ends at the first colon and a provider at the first slash, so
    /// a value may contain both; an issuer's URL is percent-encoded. A phone number in national
    /// form has its region after the kind.
    ///
    /// # Errors
    /// A part is missing. The value is not checked.
    ///
    /// ```
    /// use polynym_identifier::{Identifier, RawIdentifier};
    ///
    /// let raw = RawIdentifier::from_text("phone/US:(415) 555-2300")?;
    /// assert_eq!(Identifier::parse(raw)?.to_string(), "phone:+14155552300");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_text(text: &'a str) -> Result<Self, TextError> {
        let (word, value) = text.split_once(':').ok_or(TextError::NoKind)?;
        if let Some(region) = word.strip_prefix("phone/") {
            return Ok(RawIdentifier::Phone { number: value, region });
        }
        RawIdentifier::of_kind(word.parse()?, value)
    }

    fn of_kind(kind: Kind, value: &'a str) -> Result<Self, TextError> {
        Ok(match kind {
            Kind::Email => RawIdentifier::Email(value),
            Kind::Handle => RawIdentifier::Handle(value),
            Kind::Phone => RawIdentifier::Phone { number: value, region: "" },
            Kind::Social => {
                let (provider, subject) = value.split_once('/').ok_or(TextError::NoSubject)?;
                if matches!(provider, "https:" | "http:") {
                    return Err(TextError::PlainIssuer);
                }
                RawIdentifier::Social { provider, subject }
            }
            Kind::Url => RawIdentifier::Url(value),
        })
    }
}

/// The text form: `email:joe@example.com`, `social:github/583231`.
impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind(), self.canonical())
    }
}

/// The text form as typed, with the region of a phone number, if any.
impl fmt::Display for RawIdentifier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RawIdentifier::Phone { number, region } if !region.is_empty() => {
                write!(f, "phone/{region}:{number}")
            }
            RawIdentifier::Phone { number, .. } => write!(f, "phone:{number}"),
            RawIdentifier::Social { provider, subject } => {
                write!(f, "social:{}/{subject}", social::encode(provider))
            }
            RawIdentifier::Email(v) | RawIdentifier::Handle(v) | RawIdentifier::Url(v) => {
                write!(f, "{}:{v}", self.kind())
            }
        }
    }
}
