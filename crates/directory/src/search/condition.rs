//! The conditions of a filter, each about one field.

use super::element::{canonical_values, reversed, values};
use super::field::Field;
use super::lead::AccessPath;
use super::name::TypedName;
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

/// The field that a condition tests, and the elements that satisfy it.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// An element of a field in one of these ranges, which are in order.
    Field(Field, Vec<Range>),
    UpdateTime(Range),
    /// An identity with one of these identifiers: one for each version of the rules.
    Identity(Vec<Identifier>),
    /// An identity of this kind whose canonical value starts with one of these texts.
    IdentityPrefix(Kind, Vec<String>),
    /// An identity of this kind whose canonical value ends in one of these texts.
    IdentitySuffix(Kind, Vec<String>),
    /// A display name whose last words are these.
    LastWords(TypedName),
}

impl Condition {
    pub fn matches(&self, user: &User) -> bool {
        if self.differs { self.is_present(user) && !self.has(user) } else { self.has(user) }
    }

    /// Whether an element satisfies the condition.
    fn has(&self, user: &User) -> bool {
        match &self.subject {
            Subject::Field(field, ranges) => {
                let is_in = |value| ranges.iter().any(|range| range.contains(value));
                values(user, field).iter().any(is_in)
            }
            Subject::UpdateTime(range) => range.contains(&Scalar::Time(user.update_time)),
            Subject::Identity(identifiers) => {
                identifiers.iter().any(|identifier| user.identity(identifier).is_some())
            }
            Subject::IdentityPrefix(kind, prefixes) => {
                has_value(user, *kind, |value| prefixes.iter().any(|text| value.starts_with(text)))
            }
            Subject::IdentitySuffix(kind, suffixes) => {
                has_value(user, *kind, |value| suffixes.iter().any(|text| value.ends_with(text)))
            }
            Subject::LastWords(last) => last.is_end_of(&user.display_name),
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
            Subject::Field(Field::State, ranges) => {
                match ranges[..].iter().find_map(Range::as_point) {
                    // Indexes omit the state of active users.
                    Some(Scalar::String(word)) if word != "ACTIVE" => {
                        AccessPath::of_ranges(Field::State, ranges.clone())
                    }
                    _ => return None,
                }
            }
            Subject::Field(field, ranges) => AccessPath::of_ranges(field.clone(), ranges.clone()),
            Subject::UpdateTime(_) | Subject::LastWords(_) => return None,
            Subject::IdentitySuffix(Kind::Email, suffixes) => domain_path(suffixes.first()?),
            Subject::IdentitySuffix(Kind::Phone, suffixes) => {
                let end = Range::prefix(&reversed(suffixes.first()?));
                AccessPath::of_range(Field::ReversedPhone, end)
            }
            Subject::IdentitySuffix(..) => return None,
            Subject::Identity(identifiers) => AccessPath::Identity(identifiers.clone()),
            Subject::IdentityPrefix(kind, prefixes) => {
                let prefix = prefixes.iter().map(String::as_str).reduce(common_start)?.to_owned();
                AccessPath::IdentityPrefix { kind: *kind, prefix }
            }
        })
    }
}

/// Whether a user has an identity of a kind whose canonical value satisfies a condition.
fn has_value(user: &User, kind: Kind, is_match: impl Fn(&str) -> bool) -> bool {
    canonical_values(user, kind).any(is_match)
}

/// The start that two texts have in common.
fn common_start<'t>(a: &'t str, b: &'t str) -> &'t str {
    let differs = a.char_indices().zip(b.chars()).find(|((_, a), b)| a != b);
    &a[..differs.map_or(a.len().min(b.len()), |((at, _), _)| at)]
}

/// The access path of email addresses with this end: their domain, or an end of it.
fn domain_path(suffix: &str) -> AccessPath {
    let field = Field::ReversedDomain;
    match suffix.rsplit_once('@') {
        Some((_, domain)) => AccessPath::Equals { field, value: Scalar::String(reversed(domain)) },
        None => AccessPath::of_range(field, Range::prefix(&reversed(suffix))),
    }
}
