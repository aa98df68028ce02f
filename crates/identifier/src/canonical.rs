//! Identifiers in canonical form.

use std::borrow::Cow;
use std::fmt;

use super::kind::Kind;
use super::lookalike::Guard;
use super::raw::{MAX_INPUT_BYTES, RawIdentifier};
use super::rejection::{BrokenRule, Rejection, Rule};
use super::trace::{Change, Trace};
use super::{email, handle, phone, social, url};

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
    /// use polynym_identifier::{Identifier, RawIdentifier};
    ///
    /// let joe = Identifier::parse(RawIdentifier::Email("Joe.Smith@Exämple.COM"))?;
    /// assert_eq!(joe.canonical(), "joe.smith@xn--exmple-cua.com");
    /// # Ok::<(), polynym_identifier::Rejection>(())
    /// ```
    pub fn parse(raw: RawIdentifier<'_>) -> Result<Self, Rejection> {
        match quick_form(raw) {
            Some(canonical) => Ok(Identifier::from_canonical(raw.kind(), canonical)),
            None => Identifier::of(raw, canonical_form(raw, &mut ())),
        }
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
    /// use polynym_identifier::{Identifier, RawIdentifier};
    ///
    /// let run = Identifier::normalize(RawIdentifier::Url("http://X.y/%7ejoe/"))?;
    /// let rules: Vec<_> = run.changes.iter().map(|change| change.rule).collect();
    /// assert_eq!(rules, ["whatwg", "https", "escapes", "trailing-slashes"]);
    /// # Ok::<(), polynym_identifier::Rejection>(())
    /// ```
    pub fn normalize(raw: RawIdentifier<'_>) -> Result<Normalization, Rejection> {
        let mut changes = Vec::new();
        let identifier = Identifier::of(raw, canonical_form(raw, &mut changes))?;
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

    /// Whether text names this identifier of earlier rules and not another one with the same form:
    /// for a URL, if the text is a spelling of the URL that was typed for it, or of its form.
    pub fn is_named_by(&self, raw: RawIdentifier<'_>, display: &str) -> bool {
        match raw {
            RawIdentifier::Url(typed) => {
                url::is_same(typed, display) || url::is_same(typed, &self.canonical)
            }
            _ => true,
        }
    }

    /// The canonical form as typed text.
    pub fn as_typed(&self) -> RawIdentifier<'_> {
        let value = self.canonical.as_str();
        match self.kind {
            Kind::Email => RawIdentifier::Email(value),
            Kind::Handle => RawIdentifier::Handle(value),
            Kind::Phone => RawIdentifier::Phone { number: value, region: "" },
            Kind::Social => {
                let (provider, subject) = self.encoded_social_parts().unwrap_or_default();
                RawIdentifier::Social { provider, subject }
            }
            Kind::Url => RawIdentifier::Url(value),
        }
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
        (self.kind == Kind::Handle).then(|| Guard::of_handle(&self.canonical)).flatten()
    }
}

/// Shows only the kind: values are personal data.
impl fmt::Debug for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identifier({}, …)", self.kind)
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

/// The canonical form of ordinary text.
fn quick_form(raw: RawIdentifier<'_>) -> Option<String> {
    match raw {
        RawIdentifier::Email(typed) => email::quick(typed),
        RawIdentifier::Handle(typed) => handle::quick(typed),
        _ => None,
    }
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

fn check_length(raw: RawIdentifier<'_>) -> Result<(), BrokenRule> {
    if raw.len() > MAX_INPUT_BYTES { Err(Rule::TooLong.into()) } else { Ok(()) }
}
