//! Access paths: the one condition of a search that a store evaluates, and the order in which it
//! finds users.

use std::fmt;

use locality_uuid::LocalityId;

use super::element::{canonical_values, values};
use super::field::{Field, quoted};
use super::range::Range;
use super::scalar::Scalar;
use crate::model::user::User;
use crate::view::View;
use polynym_identifier::{Identifier, Kind};

/// The condition by which a store finds users.
#[derive(Clone, Debug, PartialEq)]
pub enum AccessPath {
    /// All users of the tenant.
    All,
    /// Users with an element that equals a value.
    Equals {
        /// The field; for the state, the value is never `ACTIVE`.
        field: Field,
        /// The value.
        value: Scalar,
    },
    /// Users with an element in one of several ranges: a comparison, a prefix, presence, or one of
    /// several values.
    Range {
        /// The field; never the state.
        field: Field,
        /// The ranges, in order. None overlaps another. One may be empty.
        ranges: Vec<Range>,
    },
    /// The owners of these identifiers, all of one kind: one for each version of the rules.
    Identity(Vec<Identifier>),
    /// Users with an identity of a kind whose canonical value starts with a text.
    IdentityPrefix {
        /// The kind.
        kind: Kind,
        /// The text.
        prefix: String,
    },
}

/// The order in which an access path finds users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By id.
    Id,
    /// By value, then by id. A user comes at its least element that the path finds.
    Value,
}

/// The position of a user in the order of an access path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The least element that the path finds, or `None` in the order of ids. For identities, the
    /// canonical value as a text.
    pub value: Option<Scalar>,
    /// The user.
    pub id: LocalityId,
}

impl AccessPath {
    /// The access path of a range: an equality if the range has one value.
    pub fn of_range(field: Field, range: Range) -> Self {
        match range.as_point() {
            Some(value) => Self::Equals { value: value.clone(), field },
            None => Self::Range { field, ranges: vec![range] },
        }
    }

    /// The access path of several ranges, in order.
    pub fn of_ranges(field: Field, mut ranges: Vec<Range>) -> Self {
        match (ranges.len(), ranges.pop()) {
            (1, Some(only)) => Self::of_range(field, only),
            (_, last) => {
                ranges.extend(last);
                Self::Range { field, ranges }
            }
        }
    }

    /// The order in which it finds users.
    pub const fn order(&self) -> Order {
        match self {
            Self::All | Self::Equals { .. } | Self::Identity(_) => Order::Id,
            Self::Range { .. } | Self::IdentityPrefix { .. } => Order::Value,
        }
    }

    /// Whether it finds users by one value.
    pub const fn is_equality(&self) -> bool {
        matches!(self, Self::Equals { .. } | Self::Identity(_))
    }

    /// The field whose index it reads, if any.
    pub const fn field(&self) -> Option<&Field> {
        match self {
            Self::Equals { field, .. } | Self::Range { field, .. } => Some(field),
            Self::All | Self::Identity(_) | Self::IdentityPrefix { .. } => None,
        }
    }

    /// The view that a search reads if `view` is requested: the order by an attribute needs the
    /// attributes.
    pub fn view(&self, view: View) -> View {
        match self {
            Self::Range { field: Field::Attribute(_), .. } => View::Full,
            _ => view,
        }
    }

    /// The position of a user that it found, in the [view](AccessPath::view) of a search.
    pub fn position_of_found(&self, user: &User) -> Option<Position> {
        match self.order() {
            Order::Id => Some(Position { value: None, id: user.id }),
            Order::Value => self.position(user),
        }
    }

    /// The position of a user, or `None` if the path does not find it.
    pub fn position(&self, user: &User) -> Option<Position> {
        let value = match self {
            Self::All => None,
            Self::Equals { field, value } => {
                values(user, field).into_iter().find(|own| own == value)?;
                None
            }
            Self::Identity(identifiers) => {
                identifiers.iter().find(|identifier| user.identity(identifier).is_some())?;
                None
            }
            Self::Range { field, ranges } => {
                let mut values = values(user, field);
                values.retain(|value| ranges.iter().any(|range| range.contains(value)));
                Some(values.into_iter().min()?)
            }
            Self::IdentityPrefix { kind, prefix } => {
                let values = canonical_values(user, *kind);
                let least = values.filter(|value| value.starts_with(prefix)).min()?;
                Some(Scalar::String(least.to_owned()))
            }
        };
        Some(Position { value, id: user.id })
    }
}

/// The access path in words, for a plan.
impl fmt::Display for AccessPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all users"),
            Self::Equals { field, value } => write!(f, "{field} = {value}"),
            Self::Range { field, ranges } => {
                let ranges: Vec<_> = ranges.iter().map(Range::to_string).collect();
                write!(f, "{field} in {}", ranges.join(" or "))
            }
            Self::Identity(identifiers) => match identifiers.first() {
                Some(first) => {
                    write!(f, "identities.{} = {}", first.kind(), quoted(first.canonical()))
                }
                None => f.write_str("no identity"),
            },
            Self::IdentityPrefix { kind, prefix } => {
                write!(f, "identities.{kind} = {:?}", format!("{prefix}*"))
            }
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Id => "id",
            Self::Value => "value, id",
        })
    }
}
