//! A snapshot of the store for exports: finds of a snapshot session. MongoDB retains snapshots for
//! five minutes, unless `minSnapshotHistoryWindowInSeconds` says otherwise.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::TryStreamExt;
use locality_uuid::LocalityId;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::options::FindOptions;
use mongodb::{ClientSession, ClusterTime, Collection};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::client::error::Fault;
use crate::database::collections::{Collections, LONG_READ};
use crate::database::operations::Mongo;
use crate::lookup::records::{ownerless_holds_of, read_holds, users_of};
use crate::schema::fields::ID;
use crate::schema::tenant::read_tenant;
use crate::schema::user::StoredUser;
use crate::search::user_names::UserNames;
use polynym_directory::{Error, ExportSnapshot, ExportedUser, Hold, Scanned, Tenant, TenantRecord};
use polynym_identifier::IdentityKey;
use polynym_store_common::operations::{Operation, measure};

/// The store at the time of the session's first find.
pub struct Snapshot {
    store: Mongo,
    session: Arc<Mutex<ClientSession>>,
}

/// The session of a snapshot: one read at a time.
type Session = OwnedMutexGuard<ClientSession>;

impl Snapshot {
    /// A snapshot of the store as it is now; `None` if MongoDB has no snapshots.
    pub async fn take(store: &Mongo) -> Result<Option<Self>, Error> {
        measure(Operation::Scan, Self::open(store)).await
    }

    async fn open(store: &Mongo) -> Result<Option<Self>, Error> {
        let store = store.pinned();
        let collections = store.collections();
        let started = collections.client.start_session().snapshot(true).await;
        let mut session = started.map_err(Fault::from)?;
        if collections.is_routed {
            let now =
                store.walk_step(|collections| async move { collections.cluster_time().await });
            now.await?.iter().for_each(|now| session.advance_cluster_time(now));
        }
        let session = Arc::new(Mutex::new(session));
        let snapshot = Self { store, session };
        let first = |collections: Arc<Collections>, mut session: Session| async move {
            let no_tenant = doc! { ID: "" };
            let options = FindOptions::default();
            all(&mut session, &collections.tenants, no_tenant, options).await.map(drop)
        };
        Ok(snapshot.read_step(first).await?.map(|()| snapshot))
    }

    /// Reads in the snapshot, as one operation.
    async fn read<T, F>(
        &self,
        operation: Operation,
        read: impl FnOnce(Arc<Collections>, Session) -> F,
    ) -> Result<Option<T>, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        measure(operation, self.read_step(read)).await
    }

    /// Reads in the snapshot, even if the caller leaves; `None` once MongoDB has dropped it.
    async fn read_step<T, F>(
        &self,
        read: impl FnOnce(Arc<Collections>, Session) -> F,
    ) -> Result<Option<T>, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        let session = self.session.clone().lock_owned().await;
        match self.store.walk_step(|collections| read(collections, session)).await {
            Ok(found) => Ok(Some(found)),
            Err(fault) if fault.is_snapshot_gone() => Ok(None),
            Err(fault) => Err(fault.into()),
        }
    }
}

#[async_trait]
impl ExportSnapshot for Snapshot {
    async fn tenant(&self, name: &Tenant) -> Result<Option<Option<TenantRecord>>, Error> {
        let filter = doc! { ID: name.as_str() };
        self.read(Operation::Tenant, |collections, mut session| async move {
            let options = FindOptions::default();
            let found = all(&mut session, &collections.tenants, filter, options).await?;
            found.first().map(|document| read_tenant(document)).transpose()
        })
        .await
    }

    async fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Option<Scanned<ExportedUser>>, Error> {
        let (filter, options) = users_of(tenant, after, limit);
        self.read(Operation::Scan, |collections, mut session| async move {
            let found = all(&mut session, &collections.users, filter, options).await?;
            // Names of attributes do not change.
            let exported = |names: &UserNames, user: StoredUser| {
                ExportedUser::from_stored(names.full(&user)?, &user.private).map_err(Fault::damaged)
            };
            collections.scanned(&found, limit, exported).await
        })
        .await
    }

    async fn ownerless_holds(
        &self,
        tenant: &Tenant,
        after: Option<&IdentityKey>,
        limit: usize,
    ) -> Result<Option<Vec<Hold>>, Error> {
        let (filter, options) = ownerless_holds_of(tenant, after, limit);
        self.read(Operation::Scan, |collections, mut session| async move {
            Ok(read_holds(&all(&mut session, &collections.identities, filter, options).await?))
        })
        .await
    }
}

impl Collections {
    /// A cluster time after everything that was acknowledged so far. A router takes the time of a
    /// snapshot from its own clock, which may be behind that of another router. A find without a
    /// key goes to each shard of a collection, which replies with its time.
    async fn cluster_time(&self) -> Result<Option<ClusterTime>, Fault> {
        let mut session = self.client.start_session().causal_consistency(false).await?;
        for collection in [&self.users, &self.identities, &self.tenants] {
            let any = collection.find_one(doc! {}).projection(doc! { ID: 1 });
            any.max_time(self.timeout).session(&mut session).await?;
        }
        Ok(session.cluster_time().cloned())
    }
}

/// All documents of a find of the session.
async fn all(
    session: &mut ClientSession,
    from: &Collection<RawDocumentBuf>,
    filter: Document,
    mut options: FindOptions,
) -> Result<Vec<RawDocumentBuf>, Fault> {
    options.max_time.get_or_insert(LONG_READ);
    let mut cursor = from.find(filter).with_options(options).session(&mut *session).await?;
    Ok(cursor.stream(session).try_collect().await?)
}
