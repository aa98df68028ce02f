//! The interface of a store that can be verified.

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use locality_uuid::LocalityId;

use super::histories::Past;
use crate::directory::error::Error;
use crate::directory::model::claim::Claim;
use crate::directory::model::ownership::EndedOwnerships;
use crate::directory::model::record::Record;
use crate::identifier::IdentityKey;

/// A store that can be verified. Walks need not see one moment, and stores may be in use meanwhile:
/// whatever looks wrong is looked at again by [`CheckableStore::moment`].
#[async_trait]
pub trait CheckableStore: Sync {
    /// About how many users and claims there are.
    async fn counts(&self) -> Result<(u64, u64), Error>;

    /// All users, ascending by id.
    fn users(&self) -> BoxStream<'_, Result<UserRow, Error>>;

    /// All claims, ascending by key.
    fn claims(&self) -> BoxStream<'_, Result<ClaimRow, Error>>;

    /// The claim under each of `keys`, in their order.
    async fn claims_at(&self, keys: &[IdentityKey]) -> Result<Vec<Presence<Claim>>, Error>;

    /// The users with these ids, in their order.
    async fn users_at(&self, ids: &[LocalityId]) -> Result<Vec<Presence<UserClaims>>, Error>;

    /// All that bears on a suspicion, as it is at one moment.
    async fn moment(&self, candidate: &Candidate) -> Result<Moment, Error>;

    /// Reads each candidate's moment and writes the repair that
    /// [`plan_repair`](super::diagnosis::plan_repair) chooses, both in one transaction. Returns for
    /// each candidate whether a repair was needed.
    async fn mend(&self, candidates: &[Candidate]) -> Result<Vec<bool>, Error>;

    /// What is wrong with the index by which users are searched, where the store keeps that itself:
    /// an item for each user and entry that is checked, which has the fault if there is one. Nobody
    /// else uses such a store meanwhile.
    fn index_faults(&self) -> BoxStream<'_, Result<Option<IndexFault>, Error>> {
        stream::empty().boxed()
    }

    /// A user with its history; none where it has gone, or has no history.
    async fn past(&self, user: LocalityId) -> Result<Option<Past>, Error>;

    /// The ended ownerships of keys, in their order.
    async fn ended_at(&self, keys: &[IdentityKey]) -> Result<Vec<EndedOwnerships>, Error>;

    /// All ended ownerships, by their keys.
    fn ended(&self) -> BoxStream<'_, Result<(IdentityKey, EndedOwnerships), Error>>;

    /// Repairs faults of the index, all of which can be.
    async fn mend_index(&self, _faults: &[IndexFault]) -> Result<(), Error> {
        Ok(())
    }
}

/// A fault of the index by which users are searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexFault {
    /// The index lacks entries of this user.
    Missing(LocalityId),
    /// An entry whose user, if it names one, does not have its value.
    Stray(Option<LocalityId>, Vec<u8>),
}

/// A user of a walk.
#[derive(Clone, Debug)]
pub enum UserRow {
    /// The keys that the user lists.
    UserClaims(UserClaims),
    /// The keys that the user lists, who has an attribute without a name.
    Unnamed(UserClaims),
    /// A document that is no user, by its id as text.
    Unreadable(String),
}

/// A claim of a walk.
#[derive(Clone, Debug)]
pub enum ClaimRow {
    /// The claim under a key.
    Claim(IdentityKey, Claim),
    /// A document that is no claim, by its key as text.
    Unreadable(String),
}

/// The claims that follow from a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserClaims {
    /// The user.
    pub id: LocalityId,
    /// By their keys.
    pub claims: Vec<(IdentityKey, Claim)>,
}

impl UserClaims {
    /// The keys that a record lists.
    pub fn of(record: &Record) -> Self {
        Self { id: record.id(), claims: record.claims() }
    }

    /// The claim that follows from the user under `key`.
    pub fn claim(&self, key: &IdentityKey) -> Option<&Claim> {
        self.claims.iter().find(|(own, _)| own == key).map(|(_, claim)| claim)
    }
}

/// The result of looking for a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence<T> {
    /// No record.
    Absent,
    /// A record that cannot be read.
    Unreadable,
    /// The record.
    There(T),
}

/// The walk that found a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The user lists the key.
    Listed,
    /// The claim under the key names the user.
    Claimed,
}

/// A key and a user that may not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The walk that found it.
    pub side: Side,
    /// The key.
    pub key: IdentityKey,
    /// The user; none where the claim names none.
    pub user: Option<LocalityId>,
}

/// A key's claim and those who may have it, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The claim under the key.
    pub claim: Presence<Claim>,
    /// The user of the suspicion.
    pub user: Presence<UserClaims>,
    /// The user that the claim names, if it is another one.
    pub owner: Presence<UserClaims>,
}
