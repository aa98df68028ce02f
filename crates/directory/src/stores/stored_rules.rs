//! The versions of the rules of normalisation that a store has.

use crate::error::Error;
use crate::mutation::{Mutation, MutationKind, UserChange};

/// The versions of the rules of normalisation that a store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredRules {
    /// The version by which identifiers are normalised.
    pub version: u32,
    /// The version to which identities are being moved, while they are.
    pub next: Option<u32>,
}

impl StoredRules {
    /// The rules of a store whose identities are not being moved.
    pub const fn new(version: u32) -> Self {
        Self { version, next: None }
    }

    /// Whether a mutation is of these rules. One that names no identifier is of any.
    ///
    /// # Errors
    /// [`Error::RulesChanging`]
    pub fn check(self, mutation: &Mutation) -> Result<(), Error> {
        let is_same = mutation.rules.version() == self.version;
        let names_none = matches!(
            mutation.user_change(),
            Some(UserChange::Create(draft)) if draft.identities.is_empty()
        );
        let is_of_rules = match &mutation.kind {
            MutationKind::User(_, UserChange::Create(_)) => names_none || is_same,
            MutationKind::User(
                _,
                UserChange::Link(_)
                | UserChange::Import(_)
                | UserChange::Unlink(_)
                | UserChange::Replace(..)
                | UserChange::Verify(..)
                | UserChange::Move(..),
            )
            | MutationKind::ReleaseHold(_) => is_same,
            // They give identities to users that a run may have passed already.
            MutationKind::User(_, UserChange::Merge(..) | UserChange::Unmerge(_)) => true,
            _ => return Ok(()),
        };

        if is_of_rules && (self.next.is_none() || names_none) {
            Ok(())
        } else {
            Err(Error::RulesChanging)
        }
    }
}
