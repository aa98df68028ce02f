//! The conditions of a filter, each about one field.

use super::element::values;
use super::field::Field;
use super::lead::Lead;
use super::range::Range;
use super::scalar::Scalar;
use crate::model::user::User;
use polynym_identifier::{Identifier, Kind};

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub subject: Subject,
    /// Whether the operator is `!=`: the field is present, and no element of it is in the range.
    pub differs: bool,
}

/// What a condition looks at, and the elements that satisfy it.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    Field(Field, Range),
    UpdateTime(Range),
    /// An identity with one of these identifiers: one by each version of the rules.
    Identity(Vec<Identifier>),
    /// An identity of this kind whose canonical value starts with a text.
    IdentityPrefix(Kind, String),
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
            Subject::IdentityPrefix(kind, _) => has_kind(Some(*kind)),
        }
    }

    /// The lead that finds all users that satisfy the condition, if there is one.
    pub fn lead(&self) -> Option<Lead> {
        if self.differs {
            return None;
        }
        Some(match &self.subject {
            Subject::Field(field, range) => match range.as_point() {
                // Indexes have no state of active users.
                Some(Scalar::String(word)) if *field == Field::State && word == "ACTIVE" => {
                    return None;
                }
                Some(value) => Lead::Equals { field: field.clone(), value: value.clone() },
                None if *field == Field::State => return None,
                None => Lead::of_range(field.clone(), range.clone()),
            },
            Subject::UpdateTime(_) => return None,
            Subject::Identity(identifiers) => Lead::Identity(identifiers.clone()),
            Subject::IdentityPrefix(kind, prefix) => {
                Lead::IdentityPrefix { kind: *kind, prefix: prefix.clone() }
            }
        })
    }
}
