//! The outcome of a merge, and of undoing one, as callers see it.

use super::attribute::Value;
use super::user::{Identity, User};
use polynym_identifier::Identifier;

/// The resolution of a conflict between values of both users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConflictPolicy {
    /// The primary's value stays.
    #[default]
    PrimaryWins,
    /// The secondary's value stays.
    SecondaryWins,
    /// The merge fails.
    Fail,
}

/// The result that a merge would have.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// The identities that the primary gets.
    pub moved: Vec<Identity>,
    /// The fields with different values in both users.
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
    /// The dropped value. A primary mark is dropped without its identity.
    pub dropped: Value,
}

/// A value that undoing a merge could not restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRestored {
    /// An identity that the primary has lost since the merge.
    Identity(Identifier),
    /// The primary's display name, which has changed since the merge.
    DisplayName,
    /// An attribute of the primary, which has changed since the merge.
    Attribute(String),
}
