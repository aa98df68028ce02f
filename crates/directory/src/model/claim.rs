//! Claims: each gives an identity key to one user.

use locality_uuid::LocalityId;

use crate::clock::Now;
use crate::error::Error;
use crate::timestamp::Timestamp;

/// The record under an identity key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The user who has the key; `None` if that user was purged and the key is only held.
    pub owner: Option<LocalityId>,
    /// Whether the key is a guard: it resolves to no user and cannot be claimed.
    pub guard: bool,
    /// For a released key: the time until which no other user can take it. Then it is free, whether
    /// or not the claim still exists.
    pub hold: Option<Timestamp>,
    /// The version of the rules that normalised the key.
    pub rules_version: u32,
}

impl Claim {
    /// The user that the key resolves to.
    pub const fn resolves_to(&self) -> Option<LocalityId> {
        match self {
            Self { owner, guard: false, hold: None, .. } => *owner,
            _ => None,
        }
    }

    /// The error that prevents `wanted` from replacing this claim; `None` if the hold has expired
    /// or is for the same user.
    pub(crate) fn refusal(
        &self,
        wanted: &Self,
        now: Now,
        field: impl FnOnce() -> String,
    ) -> Option<Error> {
        match (self.hold, self.owner) {
            (Some(until), _) if now.is_past(until) => None,
            (Some(_), Some(owner)) if wanted.owner == Some(owner) => None,
            (Some(until), _) if now.may_be_past(until) => Some(Error::ClockInDoubt),
            (Some(until), _) => Some(Error::IdentityHeld { until, field: field() }),
            (None, Some(owner)) if !self.guard && !wanted.guard => {
                Some(Error::IdentityTaken { owner, field: field() })
            }
            (None, _) => Some(Error::IdentityConfusable { field: field() }),
        }
    }
}

/// The change of the claim under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimWrite {
    /// Inserts a claim. If one exists, as after an optimistic read set, the mutation is decided
    /// again.
    Insert(Claim),
    /// Replaces the existing claim.
    Update(Claim),
    /// Deletes the claim.
    Delete,
}
