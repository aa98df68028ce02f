//! The versions of a store's rules of normalisation.

use crate::error::Error;
use crate::mutation::{Mutation, MutationKind, UserChange};

/// The versions of a store's rules of normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredRules {
    /// The current version.
    pub version: u32,
    /// The version to which identities are moving, if they are.
    pub next: Option<u32>,
}

impl StoredRules {
    /// The rules of a store whose identities are not moving.
    pub const fn new(version: u32) -> Self {
        Self { version, next: None }
    }

    /// Checks that a mutation has the current rules, and that identities are not moving. A mutation
    /// without identifiers passes.
    ///
    /// # Errors
    /// [`Error::RulesChanging`].
    pub fn check(self, mutation: &Mutation) -> Result<(), Error> {
        let is_current = mutation.rules.version() == self.version;
        let is_without_identifiers = matches!(
            mutation.user_change(),
            Some(UserChange::Create(draft)) if draft.identities.is_empty()
        );
        let is_allowed = match &mutation.kind {
            MutationKind::User(_, UserChange::Create(_)) => is_without_identifiers || is_current,
            MutationKind::User(
                _,
                UserChange::Link(_)
                | UserChange::Import(_)
                | UserChange::Unlink(_)
                | UserChange::Replace(..)
                | UserChange::Verify(..)
                | UserChange::Move(..)
                | UserChange::Revert(_),
            )
            | MutationKind::ReleaseHold(_) => is_current,
            // These may give identities to users whose identities have already moved.
            MutationKind::User(_, UserChange::Merge(..) | UserChange::Unmerge(_)) => true,
            _ => return Ok(()),
        };

        if is_allowed && (self.next.is_none() || is_without_identifiers) {
            Ok(())
        } else {
            Err(Error::RulesChanging)
        }
    }
}
