//! Claims: what gives an identity key to one user.

use locality_uuid::LocalityId;

use super::timestamp::Timestamp;
use crate::clock::Now;
use crate::error::Error;

/// The record under an identity key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The user who has the key; none where that user was purged and the key is only held.
    pub owner: Option<LocalityId>,
    /// Whether the key is a guard: it resolves to no user and cannot be claimed.
    pub guard: bool,
    /// For a key that its owner has given up: the end of the time in which no other user can take
    /// it. After that it is free, whether or not the claim still exists.
    pub hold: Option<Timestamp>,
    /// The version of the rules that made the key.
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

    /// The error that keeps `wanted` from replacing this claim; none if the hold has expired or is
    /// for the same user.
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
    /// Puts a claim where there is none. Where there is one after all, which only a read set that
    /// takes what it was not told for free can bring about, the mutation has to be decided again.
    Insert(Claim),
    /// Puts a claim in the place of the one that is there.
    Update(Claim),
    /// Takes the claim away.
    Delete,
}
