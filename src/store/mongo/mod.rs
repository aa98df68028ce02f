//! The store on MongoDB, a replica set or a sharded cluster: users by their ids and claims by their keys, in two
//! collections sharded on `_id`. A look-up is two reads, each routed to one shard; a mutation is one transaction.

mod audit;
mod cluster;
mod connect;
mod error;
mod init;
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
use tokio::sync::Semaphore;

pub use audit::Audit;
pub use error::OpenError;
pub use init::{InitOptions, init};
pub use status::{CollectionStatus, ShardStatus, Status, status};

use crate::directory::{Consistency, Error, Mutation, Outcome, Resolved, Store, Tenant, WireUser};
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
/// Each operation runs in a task of its own, to its end, whether or not its caller stays: the driver's operations
/// cannot be dropped half-way without leaving connections and transactions behind.
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
    timeout: Duration,
}

impl Mongo {
    /// Opens the store in the database that `uri` names, such as `mongodb://127.0.0.1:27017/polynym`.
    ///
    /// # Errors
    /// [`OpenError`], which says what is wrong and what to do.
    pub async fn open(uri: &str, options: Options) -> Result<Self, OpenError> {
        let database = connect::connect(uri).await?;
        connect::check_schema(&database).await?;
        database.client().warm_connection_pool().await;
        Ok(Self {
            collections: Arc::new(Collections::new(database, options.timeout)),
            under_way: Arc::new(Semaphore::new(UNDER_WAY)),
        })
    }

    /// Waits until what is under way has ended, whether or not its callers are still there; no longer than one operation
    /// may take.
    pub async fn finished(&self) {
        let all = self.under_way.acquire_many(UNDER_WAY as u32);
        let _ = tokio::time::timeout(self.collections.timeout, all).await;
    }

    /// Runs an operation in a task of its own. Where that panics, what it has done is not known.
    async fn run<T, F>(&self, operation: impl FnOnce(Arc<Collections>) -> F) -> Result<T, Fault>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let permit = self.under_way.clone().try_acquire_owned().map_err(|_| Fault::Crowded)?;
        let operation = operation(self.collections.clone());
        let task = tokio::spawn(async move {
            let outcome = operation.await;
            drop(permit);
            outcome
        });
        task.await.map_err(|_| Fault::Panicked)
    }
}

impl Collections {
    fn new(database: Database, timeout: Duration) -> Self {
        Self {
            client: database.client().clone(),
            users: database.collection(schema::USERS),
            identities: database.collection(schema::IDENTITIES),
            requests: database.collection(schema::REQUESTS),
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
        let keys = keys.to_vec();
        Ok(self.run(async move |collections| collections.resolve(&keys, consistency).await).await??)
    }

    async fn get(&self, tenant: &Tenant, ids: &[LocalityId]) -> Result<Vec<Option<WireUser>>, Error> {
        let (tenant, ids) = (tenant.clone(), ids.to_vec());
        Ok(self.run(async move |collections| collections.get(&tenant, &ids).await).await??)
    }

    async fn mutate(&self, mutation: Mutation) -> Result<Outcome, Error> {
        match self.run(async move |collections| collections.mutate(&mutation).await).await {
            Ok(outcome) => outcome,
            Err(fault @ Fault::Panicked) => Err(Error::OutcomeUnknown(fault.into())),
            Err(fault) => Err(fault.into()),
        }
    }

    async fn check(&self) -> Result<(), Error> {
        Ok(self.run(async move |collections| collections.check().await).await??)
    }
}
