//! The store on MongoDB, a replica set or a sharded cluster: users by their ids and claims by their keys, in two
//! collections sharded on `_id`. A look-up is two reads, each routed to one shard; a mutation is one transaction.

mod admin;
mod audit;
mod cluster;
mod connect;
mod error;
mod init;
mod pauses;
mod read;
mod schema;
mod shape;
mod spread;
mod status;
mod survey;
mod transaction;
mod write;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mongodb::bson::{RawDocumentBuf, doc};
use mongodb::options::{ReadPreference, SelectionCriteria};
use mongodb::{Client, Collection, Database};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use audit::Audit;
pub use error::OpenError;
pub use init::{InitOptions, init};
pub use status::{CollectionStatus, ShardStatus, Status, status};

use crate::directory::{
    Claim, Consistency, Error, Mutation, Outcome, Record, Resolved, Store, Tenant, TenantRecord, Timestamp, WireUser,
};
use crate::identifier::IdentityKey;
use crate::locality::LocalityId;
use error::Fault;

/// Operations under way at once: far more than there are connections, and few enough to wait for one in time.
const UNDER_WAY: usize = 4_096;

/// How a [`Mongo`] store works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The longest that one operation may take, what is tried again included.
    pub timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(10) }
    }
}

/// A store in a database of MongoDB.
///
/// Each mutation runs in a task of its own, to its end, whether or not its caller stays: a transaction that is dropped
/// half-way stays open on the server. A look-up that is dropped costs no more than its connection; under a
/// [`Coalesced`](super::coalesce::Coalesced) store none is.
pub struct Mongo {
    collections: Arc<Collections>,
    under_way: Arc<Semaphore>,
}

/// The collections of one store.
struct Collections {
    client: Client,
    database: Database,
    users: Collection<RawDocumentBuf>,
    identities: Collection<RawDocumentBuf>,
    requests: Collection<RawDocumentBuf>,
    tenants: Collection<RawDocumentBuf>,
    timeout: Duration,
}

impl Mongo {
    /// Opens the store in the database that `uri` names, such as `mongodb://127.0.0.1:27017/polynym`.
    ///
    /// # Errors
    /// [`OpenError`], which says what is wrong and what to do.
    pub async fn open(uri: &str, options: Options) -> Result<Self, OpenError> {
        let database = connect::connect(uri).await?;
        connect::or_disconnect(&database, async {
            connect::check_schema(&database).await?;
            connect::check_complete(&database).await
        })
        .await?;
        database.client().warm_connection_pool().await;
        Ok(Self {
            collections: Arc::new(Collections::new(database, options.timeout)),
            under_way: Arc::new(Semaphore::new(UNDER_WAY)),
        })
    }

    /// Waits until what is under way has ended, whether or not its callers are still there, no longer than one operation
    /// may take; then ends the sessions on the servers and closes the connections.
    pub async fn close(&self) {
        let all = self.under_way.acquire_many(UNDER_WAY as u32);
        let _ = tokio::time::timeout(self.collections.timeout, all).await;
        connect::disconnect(&self.collections.database).await;
    }

    /// The right to begin one more operation.
    fn permit(&self) -> Result<OwnedSemaphorePermit, Fault> {
        self.under_way.clone().try_acquire_owned().map_err(|_| Fault::Crowded)
    }
}

impl Collections {
    fn new(database: Database, timeout: Duration) -> Self {
        Self {
            client: database.client().clone(),
            users: database.collection(schema::USERS),
            identities: database.collection(schema::IDENTITIES),
            requests: database.collection(schema::REQUESTS),
            tenants: database.collection(schema::TENANTS),
            database,
            timeout,
        }
    }

    /// Whether a server that takes writes answers.
    async fn check(&self) -> Result<(), Fault> {
        let primary = SelectionCriteria::ReadPreference(ReadPreference::Primary);
        let ping = self.database.run_command(doc! { "ping": 1 }).selection_criteria(primary);
        let answer = tokio::time::timeout(self.timeout, async { ping.await }).await;
        answer.map_err(|_| Fault::Late)??;
        Ok(())
    }
}

#[async_trait]
impl Store for Mongo {
    async fn resolve(&self, keys: &[IdentityKey], consistency: Consistency) -> Result<Resolved, Error> {
        let _permit = self.permit()?;
        Ok(self.collections.resolve(keys, consistency).await?)
    }

    async fn get(&self, tenant: &Tenant, ids: &[LocalityId]) -> Result<Vec<Option<WireUser>>, Error> {
        let _permit = self.permit()?;
        Ok(self.collections.get(tenant, ids).await?)
    }

    async fn claims(&self, keys: &[IdentityKey]) -> Result<Vec<Option<Claim>>, Error> {
        let _permit = self.permit()?;
        Ok(self.collections.claims(keys).await?)
    }

    async fn tenant(&self, name: &Tenant) -> Result<Option<TenantRecord>, Error> {
        let _permit = self.permit()?;
        Ok(self.collections.tenant(name).await?)
    }

    async fn tenants(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<TenantRecord>, Error> {
        let _permit = self.permit()?;
        Ok(self.collections.tenants(prefix, after, limit).await?)
    }

    async fn scan(&self, tenant: &Tenant, after: Option<LocalityId>, limit: usize) -> Result<Vec<Record>, Error> {
        let _permit = self.permit()?;
        Ok(self.collections.scan(tenant, after, limit).await?)
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<(Tenant, LocalityId)>, Error> {
        let _permit = self.permit()?;
        Ok(self.collections.due(now, limit).await?)
    }

    async fn mutate(&self, mutation: Mutation) -> Result<Outcome, Error> {
        let permit = self.permit()?;
        let collections = self.collections.clone();
        let task = tokio::spawn(async move {
            let outcome = collections.mutate(&mutation).await;
            drop(permit);
            outcome
        });
        task.await.unwrap_or_else(|_| Err(Error::OutcomeUnknown(Fault::Panicked.into())))
    }

    async fn check(&self) -> Result<(), Error> {
        Ok(self.collections.check().await?)
    }
}
