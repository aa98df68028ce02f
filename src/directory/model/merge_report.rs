//! The outcome of a merge, and of undoing one, as callers see it.

use super::attribute::Value;
use super::user::{Identity, User};
use crate::identifier::Identifier;

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

/// What a merge would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// The identities that the primary gets.
    pub moved: Vec<Identity>,
    /// What both users have a value of their own for.
    pub conflicts: Vec<Conflict>,
    /// The primary as it would be.
    pub result: User,
}

/// Something that both users have, differently.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// What it is: `display_name`, `attributes.NAME`, or `primary.KIND` for the mark of the primary
    /// identity of a kind.
    pub field: String,
    /// The value that stays.
    pub kept: Value,
    /// The value that goes. Where it is that of a mark, the identity itself stays.
    pub dropped: Value,
}

/// What the user that comes out of a merge, or the other one, could not be given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRestored {
    /// An identity that the primary has given up since.
    Identity(Identifier),
    /// The primary's display name, which has changed since.
    DisplayName,
    /// An attribute of the primary, which has changed since.
    Attribute(String),
}
