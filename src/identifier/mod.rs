//! Identifiers: what a caller typed, parsed once into a type that can only hold a canonical form.
//!
//! Here live the five kinds, their rules, the identity key and the look-alike guard. Who owns an
//! identifier, and whether a tenant wants guards at all, is decided elsewhere.

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
pub(crate) use unicode::{character_issue, is_mark};

use rejection::BrokenRule;
use trace::Trace;

/// The version of the rules that this build applies. It is kept beside each stored identifier,
/// never in its key, so that identifiers written under older rules can be found and redone.
pub const RULES_VERSION: u32 = 2;

/// The longest input in bytes that is looked at. Every canonical form is far shorter; the bound
/// keeps the cost of a hostile value small.
pub const MAX_INPUT_BYTES: usize = 4096;

/// The kind of an identifier. The order is that of the kinds' words, and so of keys.
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
        let named = |kind: &Kind| kind.as_str() == word;
        Kind::ALL.into_iter().find(named).ok_or(TextError::UnknownKind)
    }
}

/// An identifier as a caller typed it, unchecked.
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
        /// ISO 3166 alpha-2 code of the country in which a national number is dialled; may be
        /// empty for a number in international form.
        region: &'a str,
    },
    /// An account at another provider.
    Social {
        /// The provider's short name, or the URL of its issuer, which may be percent-encoded.
        provider: &'a str,
        /// The account's id, as the provider gives it.
        subject: &'a str,
    },
    /// The address of a profile page.
    Url(&'a str),
}

impl RawIdentifier<'_> {
    /// The kind that the caller chose.
    pub const fn kind(&self) -> Kind {
        match self {
            RawIdentifier::Email(_) => Kind::Email,
            RawIdentifier::Handle(_) => Kind::Handle,
            RawIdentifier::Phone { .. } => Kind::Phone,
            RawIdentifier::Social { .. } => Kind::Social,
            RawIdentifier::Url(_) => Kind::Url,
        }
    }

    /// The part that a person would recognise, as typed: for a social account the subject.
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

/// An identifier in its canonical form. Two identifiers are the same exactly when they are equal.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identifier {
    kind: Kind,
    canonical: String,
}

impl Identifier {
    /// Parses what a caller typed into its canonical form.
    ///
    /// # Errors
    /// A [`Rejection`] that names the rule that was broken.
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

    /// Parses what a caller typed by the first version of the rules, which older stores have.
    ///
    /// # Errors
    /// A [`Rejection`] that names the rule that was broken.
    pub fn parse_first(raw: RawIdentifier<'_>) -> Result<Self, Rejection> {
        Identifier::of(raw, first_form(raw, &mut ()))
    }

    /// Wraps a canonical form that was read back from a store. It is trusted, not checked: for
    /// what a caller typed there is [`Identifier::parse`].
    pub const fn from_canonical(kind: Kind, canonical: String) -> Self {
        Identifier { kind, canonical }
    }

    /// Parses like [`Identifier::parse`] and reports what each rule changed: the dry run.
    ///
    /// # Errors
    /// The same as those of [`Identifier::parse`].
    pub fn normalize(raw: RawIdentifier<'_>) -> Result<Normalization, Rejection> {
        let mut changes = Vec::new();
        let identifier = Identifier::of(raw, canonical_form(raw, &mut changes))?;
        Ok(Normalization { guard: identifier.guard(), identifier, changes })
    }

    /// The same by the first version of the rules.
    ///
    /// # Errors
    /// The same as those of [`Identifier::parse_first`].
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
        canonical.map(|canonical| Identifier { kind, canonical }).map_err(|fault| fault.of(kind))
    }

    /// The kind.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The canonical form, without the kind.
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// A social identifier of a provider and a subject that were read back from a store. They are
    /// trusted, not checked.
    pub fn of_account(provider: &str, subject: &str) -> Self {
        Identifier::from_canonical(Kind::Social, format!("{}/{subject}", social::encode(provider)))
    }

    /// Provider and subject, where this is a social identifier.
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

    /// The key that this identifier reserves beside its own so that nothing that looks like it
    /// can exist; none for an ASCII handle, and for the other kinds.
    pub fn guard(&self) -> Option<Guard> {
        match self.kind {
            Kind::Handle => Guard::of_handle(&self.canonical),
            _ => None,
        }
    }
}

/// Shows the kind alone: values are personal data.
impl fmt::Debug for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identifier({}, …)", self.kind)
    }
}

/// Shows the kind alone: values are personal data.
impl fmt::Debug for RawIdentifier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawIdentifier({}, …)", self.kind())
    }
}

/// The result of a dry run of the rules.
#[derive(Clone, Debug)]
pub struct Normalization {
    /// The identifier in its canonical form.
    pub identifier: Identifier,
    /// The guard that it reserves against look-alikes.
    pub guard: Option<Guard>,
    /// The changes, in the order of the rules; a rule that changed nothing is absent.
    pub changes: Vec<Change>,
}

/// Loads what the rules build on first use, so that no caller waits for it. Takes about a tenth
/// of a second the first time.
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
