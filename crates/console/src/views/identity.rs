//! Identities and identifiers.

use intl::display;
use polynym_identifier::{Identifier, RawIdentifier};
use polynym_lines::{identifier_message, raw_identifier};
use polynym_proto::v1;
use polynym_proto::v1::identifier::Kind;

use super::Time;

/// An identity of a user.
#[derive(Clone, Debug)]
pub struct IdentityView {
    /// The kind, such as `email`.
    pub kind: &'static str,
    /// The canonical value.
    pub value: String,
    /// The value as typed, if it differs.
    pub typed: Option<String>,
    /// The text form, such as `email:joe@example.com`, for forms and commands.
    pub text: String,
    /// Whether it is the primary one of its kind.
    pub is_primary: bool,
    /// When it was verified.
    pub verified: Option<Time>,
    /// Who verified it.
    pub verified_by: String,
    /// Since when the user has it.
    pub since: Option<Time>,
}

impl IdentityView {
    /// The view of an identity.
    pub fn of(identity: &v1::Identity) -> Self {
        let value = value(identity.identifier.as_ref());
        // The typed form of an account has no provider.
        let subject = match identity.identifier.as_ref().and_then(|own| own.kind.as_ref()) {
            Some(Kind::Social(account)) => &*account.subject,
            _ => "",
        };
        let is_other = ![&*value, subject, ""].contains(&&*identity.display);
        Self {
            kind: kind(identity.identifier.as_ref()),
            typed: is_other.then(|| identity.display.clone()),
            value,
            text: text(identity.identifier.as_ref()),
            is_primary: identity.primary,
            verified: Time::of(identity.verify_time.as_ref()),
            verified_by: identity.verified_by.clone(),
            since: Time::of(identity.link_time.as_ref()),
        }
    }
}

/// The kind of an identifier, such as `email`.
pub fn kind(identifier: Option<&v1::Identifier>) -> &'static str {
    raw_identifier(identifier).map_or("identifier", |raw| raw.kind().as_str())
}

/// The value of an identifier, without its kind.
pub fn value(identifier: Option<&v1::Identifier>) -> String {
    match identifier.and_then(|identifier| identifier.kind.as_ref()) {
        Some(Kind::Email(value) | Kind::Handle(value) | Kind::Url(value)) => value.clone(),
        Some(Kind::Phone(phone)) => phone.number.clone(),
        Some(Kind::Social(v1::Social { provider, subject })) => format!("{provider}/{subject}"),
        None => String::new(),
    }
}

/// The canonical value of an identifier as typed; the value as typed if it has none.
pub fn canonical_value(typed: Option<&v1::Identifier>) -> String {
    let parsed = raw_identifier(typed).and_then(|raw| Identifier::parse(raw).ok());
    let canonical = parsed.map(|parsed| identifier_message(parsed.as_typed()));
    value(canonical.as_ref().or(typed))
}

/// The text form of an identifier, such as `email:joe@example.com`.
pub fn text(identifier: Option<&v1::Identifier>) -> String {
    raw_identifier(identifier).map(|raw| raw.to_string()).unwrap_or_default()
}

/// The identifier of a text form.
pub fn parse(text: &str) -> Option<v1::Identifier> {
    RawIdentifier::from_text(text).ok().map(identifier_message)
}

/// The English name of a region, such as `United States`; its code if it has none.
pub fn region_name(code: &str) -> String {
    display::region_name("en", code).map_or_else(|| code.to_owned(), Into::into)
}
