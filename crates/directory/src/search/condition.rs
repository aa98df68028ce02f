//! The conditions of a filter, each about one field.

use super::element::{reversed, values};
use super::field::Field;
use super::lead::AccessPath;
use super::range::Range;
use super::scalar::Scalar;
use crate::folding::words;
use crate::model::user::User;
use polynym_identifier::{Identifier, Kind};

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub subject: Subject,
    /// Whether the operator is `!=`: the field is present, and no element of it is in the range.
    pub differs: bool,
}

/// The field that a condition tests, and the elements that satisfy it.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    Field(Field, Range),
    UpdateTime(Range),
    /// An identity with one of these identifiers: one for each version of the rules.
    Identity(Vec<Identifier>),
    /// An identity of this kind whose canonical value starts with a text.
    IdentityPrefix(Kind, String),
    /// An identity of this kind whose canonical value ends in a text.
    IdentitySuffix(Kind, String),
    /// A display name whose last words are these.
    LastWords(Vec<String>),
}

impl Condition {
    pub fn matches(&self, user: &User) -> bool {
        if self.differs { self.is_present(user) && !self.has(user) } else { self.has(user) }
    }

    /// Whether an element satisfies the condition.
    fn has(&self, user: &User) -> bool {
        match &self.subject {
            Subject::Field(field, range) => {
                values(user, field).iter().any(|value| range.contains(value))
            }
            Subject::UpdateTime(range) => range.contains(&Scalar::Time(user.update_time)),
            Subject::Identity(identifiers) => {
                identifiers.iter().any(|identifier| user.identity(identifier).is_some())
            }
            Subject::IdentityPrefix(kind, prefix) => user.identities.iter().any(|identity| {
                identity.identifier.kind() == *kind
                    && identity.identifier.canonical().starts_with(prefix)
            }),
            Subject::IdentitySuffix(kind, suffix) => user.identities.iter().any(|identity| {
                identity.identifier.kind() == *kind
                    && identity.identifier.canonical().ends_with(suffix)
            }),
            Subject::LastWords(last) => words(&user.display_name).ends_with(last),
        }
    }

    fn is_present(&self, user: &User) -> bool {
        let has_kind = |kind: Option<Kind>| {
            user.identities.iter().any(|identity| Some(identity.identifier.kind()) == kind)
        };
        match &self.subject {
            Subject::Field(field, _) => !values(user, field).is_empty(),
            Subject::UpdateTime(_) => true,
            Subject::Identity(identifiers) => has_kind(identifiers.first().map(Identifier::kind)),
            Subject::IdentityPrefix(kind, _) | Subject::IdentitySuffix(kind, _) => {
                has_kind(Some(*kind))
            }
            Subject::LastWords(_) => true,
        }
    }

    /// The access path that finds all users that satisfy the condition, if any.
    pub fn access_path(&self) -> Option<AccessPath> {
        if self.differs {
            return None;
        }
        Some(match &self.subject {
            Subject::Field(field, range) => match range.as_point() {
                // Indexes omit the state of active users.
                Some(Scalar::String(word)) if *field == Field::State && word == "ACTIVE" => {
                    return None;
                }
                Some(value) => AccessPath::Equals { field: field.clone(), value: value.clone() },
                None if *field == Field::State => return None,
                None => AccessPath::of_range(field.clone(), range.clone()),
            },
            Subject::UpdateTime(_) | Subject::LastWords(_) => return None,
            Subject::IdentitySuffix(Kind::Email, suffix) => domain_path(suffix),
            Subject::IdentitySuffix(..) => return None,
            Subject::Identity(identifiers) => AccessPath::Identity(identifiers.clone()),
            Subject::IdentityPrefix(kind, prefix) => {
                AccessPath::IdentityPrefix { kind: *kind, prefix: prefix.clone() }
            }
        })
    }
}

/// The access path of email addresses with this end: their domain, or an end of it.
fn domain_path(suffix: &str) -> AccessPath {
    let field = Field::ReversedDomain;
    match suffix.rsplit_once('@') {
        Some((_, domain)) => AccessPath::Equals { field, value: Scalar::String(reversed(domain)) },
        None => AccessPath::of_range(field, Range::prefix(&reversed(suffix))),
    }
}
