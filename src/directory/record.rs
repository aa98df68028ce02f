//! A user as stores keep it: what everybody may see, and beside it what only the rules of this module need.

use super::{Claim, Identity, User, WireError, WireUser, wire};
use crate::identifier::IdentityKey;
use crate::locality::LocalityId;

/// All that is kept of a user.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What answers show.
    pub user: User,
}

impl Record {
    /// The user's id.
    pub const fn id(&self) -> LocalityId {
        self.user.id
    }

    /// The claims that follow from the user, by their keys: those that the store has to hold, and no others of this user.
    pub fn claims(&self) -> Vec<(IdentityKey, Claim)> {
        let claim = |identity: &Identity| (self.user.key(&identity.identifier), Claim::of(self.id(), identity));
        self.user.identities.iter().map(claim).collect()
    }

    /// The two parts that a store keeps: the user as answers carry it, and what is for [`Record::decode`] alone to read,
    /// which is empty for nearly all users.
    pub fn encode(&self) -> (WireUser, Vec<u8>) {
        (WireUser::of(&self.user), wire::encode_private(self))
    }

    /// The record of what [`Record::encode`] gave.
    ///
    /// # Errors
    /// [`WireError`] where that is something else.
    pub fn decode(user: &WireUser, private: &[u8]) -> Result<Self, WireError> {
        let mut record = Self { user: user.decode()? };
        wire::decode_private(private, &mut record)?;
        Ok(record)
    }
}
