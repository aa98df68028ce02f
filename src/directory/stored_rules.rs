//! The versions of the rules of normalisation that a store has.

use super::error::Error;
use super::mutation::{Mutation, MutationKind};

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
        let is_of_rules = match &mutation.change {
            MutationKind::Create(draft) => draft.identities.is_empty() || is_same,
            MutationKind::Link(_)
            | MutationKind::Unlink(_)
            | MutationKind::Replace(..)
            | MutationKind::Verify(..)
            | MutationKind::Move(..)
            | MutationKind::Release(_) => is_same,
            // They give identities to users that were looked at before.
            MutationKind::Merge(..) | MutationKind::Unmerge(_) => true,
            _ => return Ok(()),
        };
        let names_none =
            matches!(&mutation.change, MutationKind::Create(draft) if draft.identities.is_empty());
        if is_of_rules && (self.next.is_none() || names_none) {
            Ok(())
        } else {
            Err(Error::RulesChanging)
        }
    }
}
