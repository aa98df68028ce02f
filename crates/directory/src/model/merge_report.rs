//! The outcome of a merge, and of undoing one, as callers see it.

use super::attribute::Value;
use super::user::{Identity, User};
use polynym_identifier::Identifier;

/// Whose value stays where both users have one of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConflictPolicy {
    /// The primary's.
    #[default]
    PrimaryWins,
    /// The secondary's.
    SecondaryWins,
    /// Neither: the merge is refused.
    Fail,
}

/// The result that a merge would have.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// The identities that the primary gets.
    pub moved: Vec<Identity>,
    /// The fields in which both users have values of their own.
    pub conflicts: Vec<Conflict>,
    /// The primary as it would be.
    pub result: User,
}

/// A field for which both users have a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// The field: `display_name`, `attributes.NAME`, or `primary.KIND` for the primary identity of
    /// a kind.
    pub field: String,
    /// The value that stays.
    pub kept: Value,
    /// The value that goes. Where it is that of a mark, the identity itself stays.
    pub dropped: Value,
}

/// A part that undoing a merge could not give back to one of the users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRestored {
    /// An identity that the primary has given up since.
    Identity(Identifier),
    /// The primary's display name, which has changed since.
    DisplayName,
    /// An attribute of the primary, which has changed since.
    Attribute(String),
}
