//! The collections of one store, with what all operations on them share.

use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::RawDocumentBuf;
use mongodb::{Client, Collection, Database};

use super::reachability::Reachability;
use super::schema;
use super::sessions::Sessions;
use super::versions::Fence;
use crate::store::attribute_names::AttributeNames;
use crate::store::owner_hints::OwnerHints;

/// The collections of one store.
#[derive(Clone)]
pub struct Collections {
    pub client: Client,
    pub database: Database,
    pub users: Collection<RawDocumentBuf>,
    pub identities: Collection<RawDocumentBuf>,
    pub requests: Collection<RawDocumentBuf>,
    pub tenants: Collection<RawDocumentBuf>,
    pub timeout: Duration,
    /// Whether a router stands before the shards.
    pub is_routed: bool,
    pub sessions: Arc<Sessions>,
    pub fence: Arc<Fence>,
    pub reachability: Arc<Reachability>,
    pub hints: Arc<OwnerHints>,
    pub names: Arc<AttributeNames>,
}

impl Collections {
    pub fn new(database: Database, timeout: Duration, is_routed: bool, fence: Fence) -> Self {
        Self {
            client: database.client().clone(),
            users: database.collection(schema::USERS),
            identities: database.collection(schema::IDENTITIES),
            requests: database.collection(schema::REQUESTS),
            tenants: database.collection(schema::TENANTS),
            database,
            timeout,
            is_routed,
            sessions: Arc::default(),
            fence: Arc::new(fence),
            reachability: Arc::default(),
            hints: OwnerHints::new(0),
            names: Arc::default(),
        }
    }
}
