//! Identifiers of people: email addresses, handles, phone numbers, social accounts and profile
//! URLs, parsed into canonical forms, so that two spellings of one identifier are equal.
//!
//! | kind | typed | canonical | by |
//! |---|---|---|---|
//! | email | `Joe.Smith@Exämple.COM` | `joe.smith@xn--exmple-cua.com` | RFC 5321, RFC 6531, UTS 46 |
//! | handle | `@Joe` | `joe` | PRECIS (RFC 8265), UTS 39 |
//! | phone | `(415) 555-2300` in `US` | `+14155552300` | E.164, libphonenumber |
//! | social | `GitHub`, `583231` | `github/583231` | OpenID Connect |
//! | url | `http://twitter.com/Joe/` | `https://x.com/joe` | WHATWG, RFC 3986 |
//!
//! ```
//! use polynym::identifier::{Identifier, RawIdentifier};
//!
//! let typed = Identifier::parse(RawIdentifier::Phone { number: "(415) 555-2300", region: "US" })?;
//! let stored = Identifier::parse(RawIdentifier::from_text("phone:+1 415 555 2300")?)?;
//! assert_eq!(typed, stored);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A value that breaks a rule is rejected with the rule, its position and advice, never the value:
//!
//! ```
//! use polynym::identifier::{Identifier, RawIdentifier};
//!
//! let rejection = Identifier::parse(RawIdentifier::Email("joe smith@example.com")).unwrap_err();
//! assert_eq!(rejection.rule().as_str(), "email-character");
//! assert_eq!(rejection.position(), Some(3));
//! ```
//!
//! [`Identifier::normalize`] shows the effect of each rule. [`Guard`] protects handles against
//! look-alikes. [`IdentityKey`] combines a tenant and an identifier in a key for stores. [`Rules`]
//! selects a version of the rules, for stores written by an older one.
//!
//! Canonical forms never change within a version. Parsing takes at most half a millisecond for any
//! input. Debug output of all types hides values, which are personal data.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

mod domain;
mod email;
mod handle;
mod key;
mod lookalike;
mod phone;
mod phone_metadata;
mod phone_parse;
mod profile;
mod rejection;
mod rules;
mod social;
mod text;
mod trace;
mod unicode;
mod url;

#[cfg(test)]
mod tests;

pub use key::IdentityKey;
pub use lookalike::Guard;
pub use rejection::{Rejection, Rule};
pub use rules::{Parse, Rules};
pub use text::TextError;
pub use trace::Change;
pub use unicode::{CharacterIssue, character_issue, is_mark};

use rejection::BrokenRule;
use trace::Trace;

/// The current version of the rules. Stores keep it with each identifier, not in its key, to find
/// identifiers of older versions.
pub const RULES_VERSION: u32 = 2;

/// The maximum input in bytes, which bounds the cost of a hostile value. Canonical forms are far
/// shorter.
pub const MAX_INPUT_BYTES: usize = 4096;

/// The kind of an identifier. Kinds order like their words, and so like keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An email address.
    Email,
    /// A name chosen by the user, unique within the tenant.
    Handle,
    /// A telephone number.
    Phone,
    /// An account at another provider.
    Social,
    /// The address of a profile page.
    Url,
}

impl Kind {
    /// All kinds, in order.
    pub const ALL: [Kind; 5] = [Kind::Email, Kind::Handle, Kind::Phone, Kind::Social, Kind::Url];

    /// The word for the kind in keys and in the text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Email => "email",
            Kind::Handle => "handle",
            Kind::Phone => "phone",
            Kind::Social => "social",
            Kind::Url => "url",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = TextError;

    fn from_str(word: &str) -> Result<Self, TextError> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == word).ok_or(TextError::UnknownKind)
    }
}

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

    fn len(&self) -> usize {
        match self {
            RawIdentifier::Email(v) | RawIdentifier::Handle(v) | RawIdentifier::Url(v) => v.len(),
            RawIdentifier::Phone { number, region } => number.len() + region.len(),
            RawIdentifier::Social { provider, subject } => provider.len() + subject.len(),
        }
    }
}

/// An identifier in its canonical form.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identifier {
    kind: Kind,
    canonical: String,
}

impl Identifier {
    /// Parses typed text into its canonical form.
    ///
    /// # Errors
    /// The text breaks a rule.
    ///
    /// ```
    /// use polynym::identifier::{Identifier, RawIdentifier};
    ///
    /// let joe = Identifier::parse(RawIdentifier::Email("Joe.Smith@Exämple.COM"))?;
    /// assert_eq!(joe.canonical(), "joe.smith@xn--exmple-cua.com");
    /// # Ok::<(), polynym::identifier::Rejection>(())
    /// ```
    pub fn parse(raw: RawIdentifier<'_>) -> Result<Self, Rejection> {
        let quick = match raw {
            RawIdentifier::Email(typed) => email::quick(typed),
            RawIdentifier::Handle(typed) => handle::quick(typed),
            _ => None,
        };
        match quick {
            Some(canonical) => Ok(Identifier::from_canonical(raw.kind(), canonical)),
            None => Identifier::of(raw, canonical_form(raw, &mut ())),
        }
    }

    /// Parses by the first version of the rules, for older stores.
    ///
    /// # Errors
    /// The text breaks a rule.
    pub fn parse_first(raw: RawIdentifier<'_>) -> Result<Self, Rejection> {
        Identifier::of(raw, first_form(raw, &mut ()))
    }

    /// Wraps a stored canonical form without checks. For typed text use [`Identifier::parse`].
    pub const fn from_canonical(kind: Kind, canonical: String) -> Self {
        Identifier { kind, canonical }
    }

    /// Parses like [`Identifier::parse`], and reports the changes of each rule.
    ///
    /// # Errors
    /// The text breaks a rule.
    ///
    /// ```
    /// use polynym::identifier::{Identifier, RawIdentifier};
    ///
    /// let run = Identifier::normalize(RawIdentifier::Url("http://X.y/%7ejoe/"))?;
    /// let rules: Vec<_> = run.changes.iter().map(|change| change.rule).collect();
    /// assert_eq!(rules, ["whatwg", "https", "escapes", "trailing-slashes"]);
    /// # Ok::<(), polynym::identifier::Rejection>(())
    /// ```
    pub fn normalize(raw: RawIdentifier<'_>) -> Result<Normalization, Rejection> {
        let mut changes = Vec::new();
        let identifier = Identifier::of(raw, canonical_form(raw, &mut changes))?;
        Ok(Normalization { guard: identifier.guard(), identifier, changes })
    }

    /// The same by the first version of the rules.
    ///
    /// # Errors
    /// The text breaks a rule.
    pub fn normalize_first(raw: RawIdentifier<'_>) -> Result<Normalization, Rejection> {
        let mut changes = Vec::new();
        let identifier = Identifier::of(raw, first_form(raw, &mut changes))?;
        Ok(Normalization { guard: identifier.guard(), identifier, changes })
    }

    fn of(
        raw: RawIdentifier<'_>,
        canonical: Result<String, BrokenRule>,
    ) -> Result<Self, Rejection> {
        let kind = raw.kind();
        canonical.map(|canonical| Identifier { kind, canonical }).map_err(|broken| broken.of(kind))
    }

    /// The kind.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The canonical form, without the kind.
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// Wraps a stored provider and subject without checks.
    pub fn of_account(provider: &str, subject: &str) -> Self {
        Identifier::from_canonical(Kind::Social, format!("{}/{subject}", social::encode(provider)))
    }

    /// Provider and subject of a social identifier.
    pub fn social_parts(&self) -> Option<(Cow<'_, str>, &str)> {
        let (provider, subject) = self.encoded_social_parts()?;
        Some((social::decode(provider), subject))
    }

    /// The same, with an issuer's URL percent-encoded.
    pub fn encoded_social_parts(&self) -> Option<(&str, &str)> {
        match self.kind {
            Kind::Social => self.canonical.split_once('/'),
            _ => None,
        }
    }

    /// The guard against look-alikes that this identifier reserves; none for ASCII handles and
    /// other kinds.
    pub fn guard(&self) -> Option<Guard> {
        match self.kind {
            Kind::Handle => Guard::of_handle(&self.canonical),
            _ => None,
        }
    }
}

/// Shows only the kind: values are personal data.
impl fmt::Debug for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identifier({}, …)", self.kind)
    }
}

/// Shows only the kind: values are personal data.
impl fmt::Debug for RawIdentifier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawIdentifier({}, …)", self.kind())
    }
}

/// An identifier and the changes that led to it.
#[derive(Clone, Debug)]
pub struct Normalization {
    /// The identifier in its canonical form.
    pub identifier: Identifier,
    /// Its guard against look-alikes.
    pub guard: Option<Guard>,
    /// The changes, in the order of the rules. A rule without a change is absent.
    pub changes: Vec<Change>,
}

/// Loads the data that the rules otherwise load on first use. Takes about a tenth of a second.
pub fn warm_up() {
    phone_parse::warm_up();
}

fn canonical_form(raw: RawIdentifier<'_>, trace: &mut impl Trace) -> Result<String, BrokenRule> {
    check_length(raw)?;
    match raw {
        RawIdentifier::Email(typed) => email::canonical(typed, trace),
        RawIdentifier::Handle(typed) => handle::canonical(typed, trace),
        RawIdentifier::Phone { number, region } => phone::canonical(number, region, trace),
        RawIdentifier::Social { provider, subject } => social::canonical(provider, subject, trace),
        RawIdentifier::Url(typed) => url::canonical(typed, trace),
    }
}

fn first_form(raw: RawIdentifier<'_>, trace: &mut impl Trace) -> Result<String, BrokenRule> {
    check_length(raw)?;
    match raw {
        RawIdentifier::Email(typed) => email::first(typed, trace),
        RawIdentifier::Social { provider, subject } => social::first(provider, subject, trace),
        RawIdentifier::Url(typed) => url::first(typed, trace),
        RawIdentifier::Handle(_) | RawIdentifier::Phone { .. } => canonical_form(raw, trace),
    }
}

fn check_length(raw: RawIdentifier<'_>) -> Result<(), BrokenRule> {
    if raw.len() > MAX_INPUT_BYTES { Err(Rule::TooLong.into()) } else { Ok(()) }
}
