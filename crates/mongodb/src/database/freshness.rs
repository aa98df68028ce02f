//! Whether the reads of a transaction are fresh. A router takes the time of a snapshot from its own
//! clock, which may be behind that of another router: the snapshot may lack writes that were
//! acknowledged before the call. A transaction that writes a document it has read conflicts in that
//! case, and is repeated. A decision that rests on other documents is repeated on a later snapshot,
//! once the shards of all these documents have reported their time.

use std::collections::HashSet;

use locality_uuid::LocalityId;
use mongodb::ClientSession;

use crate::database::times::Times;
use polynym_identifier::IdentityKey;

/// A document that a mutation reads or writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A user.
    User(LocalityId),
    /// A claim.
    Claim(IdentityKey),
    /// The record of the mutation's request.
    Request,
    /// The mutation's tenant.
    Tenant,
    /// A bulk change of the mutation's tenant, by its id.
    Bulk(String),
    /// The running bulk changes of the mutation's tenant.
    RunningBulk,
    /// A delivery of the mutation's tenant, by its id.
    Delivery(String),
    /// The deliveries of the mutation's tenant.
    Deliveries,
}

/// The times that the shards reported during the attempts at one decision.
#[derive(Default)]
pub struct Freshness {
    /// The documents whose shards have answered.
    answered: HashSet<Key>,
    /// The times of their sessions: the next snapshot is not older.
    pub times: Times,
}

impl Freshness {
    /// Whether a snapshot that begins now has all writes of these documents that were acknowledged
    /// before the first attempt.
    pub fn covers<'k>(&self, mut keys: impl Iterator<Item = &'k Key>) -> bool {
        keys.all(|key| self.answered.contains(key))
    }

    /// Adds the documents that an attempt has read, and the times of its session.
    pub fn learn(&mut self, answered: impl Iterator<Item = Key>, session: &ClientSession) {
        self.answered.extend(answered);
        self.times.learn(session);
    }
}
