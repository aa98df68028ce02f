//! Whether what a transaction has read is fresh. A router takes the time of a snapshot from its own
//! clock, which may be behind that of another router: a snapshot may lack what was acknowledged
//! before the call began. A transaction that writes a document it has read conflicts then, and is
//! begun again. A decision that rests on other documents is taken again, on a snapshot that began
//! after the shards of all these documents have told their time.

use std::collections::HashSet;

use locality_uuid::LocalityId;
use mongodb::bson::Timestamp;
use mongodb::error::Error as DriverError;
use mongodb::{Client, ClientSession, ClusterTime};

use crate::identifier::IdentityKey;

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
}

/// The times that the shards reported during the attempts at one decision.
#[derive(Default)]
pub struct Freshness {
    /// The documents about which a shard was asked and has answered.
    answered: HashSet<Key>,
    /// The latest of the times, as servers pass it on.
    cluster_time: Option<ClusterTime>,
    /// The time of the latest operation that a shard reported.
    operation_time: Option<Timestamp>,
}

impl Freshness {
    /// Whether a snapshot that begins now holds all that was acknowledged of these documents before
    /// the first attempt.
    pub fn covers<'k>(&self, mut keys: impl Iterator<Item = &'k Key>) -> bool {
        keys.all(|key| self.answered.contains(key))
    }

    /// Adds what an attempt has learned: the documents that it has asked for, and the times in its
    /// session.
    pub fn learn(&mut self, answered: impl Iterator<Item = Key>, session: &ClientSession) {
        self.answered.extend(answered);
        self.cluster_time = self.cluster_time.take().max(session.cluster_time().cloned());
        self.operation_time = self.operation_time.max(session.operation_time());
    }

    /// A session whose next snapshot is not older than the times learned.
    ///
    /// # Errors
    /// What the driver says.
    pub async fn session(&self, client: &Client) -> Result<ClientSession, DriverError> {
        let Some(operation_time) = self.operation_time else {
            return client.start_session().causal_consistency(false).await;
        };
        let mut session = client.start_session().causal_consistency(true).await?;
        if let Some(cluster_time) = &self.cluster_time {
            session.advance_cluster_time(cluster_time);
        }
        session.advance_operation_time(operation_time);
        Ok(session)
    }
}
