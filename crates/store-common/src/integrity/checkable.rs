//! The interface of a store that can be verified.

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use locality_uuid::LocalityId;

use super::bulk_fault::BulkFault;
use super::finding::{IndexFault, NoticeFault};
use super::histories::Past;
use super::scope::Scope;
use polynym_directory::{Claim, EndedOwnerships, Error, MergeLinks, Record, Tenant};
use polynym_identifier::IdentityKey;

/// A store that can be verified. Walks need not read one snapshot, and the store may be in use:
/// each suspicion is checked again by [`CheckableStore::state`].
#[async_trait]
pub trait CheckableStore: Sync {
    /// The approximate numbers of users and claims, of one tenant if there is one.
    async fn counts(&self, tenant: Option<&Tenant>) -> Result<(u64, u64), Error>;

    /// All users of a part.
    fn users(&self, scope: &Scope) -> BoxStream<'_, Result<UserRow, Error>>;

    /// All claims of a part.
    fn claims(&self, scope: &Scope) -> BoxStream<'_, Result<ClaimRow, Error>>;

    /// The claims on these keys, in their order.
    async fn claims_at(&self, keys: &[IdentityKey]) -> Result<Vec<Presence<Claim>>, Error>;

    /// The users with these ids, in their order.
    async fn users_at(&self, ids: &[LocalityId]) -> Result<Vec<Presence<UserClaims>>, Error>;

    /// The state of a candidate in one snapshot.
    async fn state(&self, candidate: &Candidate) -> Result<CandidateState, Error>;

    /// Reads each candidate's state and writes the repair that
    /// [`plan_repair`](super::diagnosis::plan_repair) chooses, in one transaction. Returns for each
    /// candidate whether it was repaired.
    async fn repair(&self, candidates: &[Candidate]) -> Result<Vec<bool>, Error>;

    /// Removes the faults of a user's links, which [`link_repair`](super::links::link_repair)
    /// makes, in one transaction. Returns whether it did.
    async fn repair_links(&self, links: &MergeLinks) -> Result<bool, Error>;

    /// The check of what searches read: an item for each user of a part, and for each entry if the
    /// part is all, with the fault if there is one.
    fn index_faults(&self, scope: &Scope) -> BoxStream<'_, Result<Option<IndexFault>, Error>>;

    /// The first of these users, which differ, with their histories, in their order: those up to
    /// the one with which they have `max_events` events together, and at least one. A user without
    /// a history is absent.
    async fn pasts(
        &self,
        users: &[LocalityId],
        max_events: u64,
    ) -> Result<Vec<Presence<Past>>, Error>;

    /// The ended ownerships of keys, in their order.
    async fn ended_at(&self, keys: &[IdentityKey]) -> Result<Vec<EndedOwnerships>, Error>;

    /// All ended ownerships of a part.
    fn ended(&self, scope: &Scope) -> BoxStream<'_, Result<(IdentityKey, EndedOwnerships), Error>>;

    /// The check of notices: an item for each checked record, with the fault if there is one. A
    /// store in which users share contents is not in use meanwhile.
    fn notice_faults(&self) -> BoxStream<'_, Result<Option<NoticeFault>, Error>>;

    /// Repairs faults of notices. Leaves unreadable ones unchanged.
    async fn repair_notices(&self, faults: &[NoticeFault]) -> Result<(), Error>;

    /// Repairs faults of the index. Every fault can be repaired.
    async fn repair_index(&self, faults: &[IndexFault]) -> Result<(), Error>;

    /// The check of bulk changes: an item for each checked record, with the fault if there is one.
    fn bulk_faults(&self) -> BoxStream<'_, Result<Option<BulkFault>, Error>>;

    /// Repairs faults of bulk changes. Leaves unreadable ones unchanged.
    async fn repair_bulk_changes(&self, faults: &[BulkFault]) -> Result<(), Error>;
}

/// A user of a walk.
#[derive(Clone, Debug)]
pub enum UserRow {
    /// The claims of a user.
    UserClaims(UserClaims),
    /// The claims of a user with an unnamed attribute.
    Unnamed(UserClaims),
    /// The id, as text, of a record that is not a user.
    Unreadable(String),
}

impl UserRow {
    /// The claims; none if the record is not a user.
    pub(super) fn into_claims(self) -> Option<UserClaims> {
        match self {
            Self::UserClaims(user) | Self::Unnamed(user) => Some(user),
            Self::Unreadable(_) => None,
        }
    }
}

/// A claim of a walk.
#[derive(Clone, Debug)]
pub enum ClaimRow {
    /// The claim on a key.
    Claim(IdentityKey, Claim),
    /// The key, as text, of a record that is not a claim.
    Unreadable(String),
}

/// The claims that a user must have, and the other users that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserClaims {
    /// The user.
    pub id: LocalityId,
    /// The claims by their keys.
    pub claims: Vec<(IdentityKey, Claim)>,
    /// The other users that it names.
    pub links: MergeLinks,
}

impl UserClaims {
    /// The claims that a record lists.
    pub fn of(record: &Record) -> Self {
        Self { id: record.id(), claims: record.claims(), links: MergeLinks::from_record(record) }
    }

    /// The other users that it names.
    pub(super) fn into_links(self) -> MergeLinks {
        self.links
    }

    /// The claim that the user must have on `key`.
    pub fn claim(&self, key: &IdentityKey) -> Option<&Claim> {
        self.claims.iter().find(|(claimed, _)| claimed == key).map(|(_, claim)| claim)
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
    Present(T),
}

/// The walk that found a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The user lists the key.
    Listed,
    /// The claim on the key names the user.
    Claimed,
}

/// A key and a user that may be inconsistent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The walk that found it.
    pub side: Side,
    /// The key.
    pub key: IdentityKey,
    /// The user. None if the claim has no owner.
    pub user: Option<LocalityId>,
}

/// A key's claim and its possible owners in one snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateState {
    /// The claim on the key.
    pub claim: Presence<Claim>,
    /// The candidate's user.
    pub user: Presence<UserClaims>,
    /// The owner of the claim, if that is another user.
    pub owner: Presence<UserClaims>,
}
