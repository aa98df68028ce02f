//! The store as it was at one moment: finds of a snapshot session. MongoDB keeps what such finds
//! need for five minutes, unless `minSnapshotHistoryWindowInSeconds` says otherwise.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::TryStreamExt;
use locality_uuid::LocalityId;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::options::FindOptions;
use mongodb::{ClientSession, Collection};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::admin::{ownerless_holds_of, read_holds, users_of};
use super::collections::Collections;
use super::error::Fault;
use super::schema::{ID, StoredUser, read_tenant};
use super::{Mongo, SCAN_TIMEOUT};
use crate::directory::encoded::exported_user::ExportedUser;
use crate::directory::error::Error;
use crate::directory::model::record::Hold;
use crate::directory::model::tenant::Tenant;
use crate::directory::model::tenant_record::TenantRecord;
use crate::directory::stores::ExportSnapshot;
use crate::identifier::IdentityKey;

/// The store at the moment of the session's first find.
pub struct Snapshot {
    store: Mongo,
    session: Arc<Mutex<ClientSession>>,
}

/// The session of a snapshot, for one read after the other.
type Session = OwnedMutexGuard<ClientSession>;

impl Snapshot {
    /// The store as it is now; none where MongoDB has no snapshots.
    pub async fn take(store: &Mongo) -> Result<Option<Self>, Error> {
        let session = store.collections.client.start_session().snapshot(true).await;
        let session = Arc::new(Mutex::new(session.map_err(Fault::from)?));
        let snapshot = Self { store: store.clone(), session };
        let first = |collections: Arc<Collections>, mut session: Session| async move {
            let nobody = doc! { ID: "" };
            let none = FindOptions::default();
            all(&mut session, &collections.tenants, nobody, none).await.map(drop)
        };
        Ok(snapshot.read(first).await?.map(|()| snapshot))
    }

    /// Reads at the moment; none where MongoDB has forgotten it. It goes on though its caller does
    /// not.
    async fn read<T, F>(
        &self,
        read: impl FnOnce(Arc<Collections>, Session) -> F,
    ) -> Result<Option<T>, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        let turn = self.store.walks.clone().acquire_owned().await;
        let session = self.session.clone().lock_owned().await;
        let read = read(self.store.collections.clone(), session);
        let read = self.store.spawn(SCAN_TIMEOUT, async move {
            let found = read.await;
            drop(turn);
            found
        })?;
        match read.await.unwrap_or(Err(Fault::Panicked)) {
            Ok(found) => Ok(Some(found)),
            Err(fault) if fault.is_forgotten() => Ok(None),
            Err(fault) => Err(fault.into()),
        }
    }
}

#[async_trait]
impl ExportSnapshot for Snapshot {
    fn is_lasting(&self) -> bool {
        false
    }

    async fn tenant(&self, name: &Tenant) -> Result<Option<Option<TenantRecord>>, Error> {
        let filter = doc! { ID: name.as_str() };
        self.read(|collections, mut session| async move {
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
    ) -> Result<Option<Vec<ExportedUser>>, Error> {
        let (filter, options) = users_of(tenant, after, limit);
        self.read(|collections, mut session| async move {
            let found = all(&mut session, &collections.users, filter, options).await?;
            // Names of attributes stay what they are.
            let mut users = Vec::with_capacity(found.len());
            for document in &found {
                let user = StoredUser::read(document)?;
                let private = user.private.clone();
                let user = collections.full_user(user).await?;
                users.push(ExportedUser::from_stored(user, &private).map_err(Fault::damaged)?);
            }
            Ok(users)
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
        self.read(|collections, mut session| async move {
            read_holds(&all(&mut session, &collections.identities, filter, options).await?)
        })
        .await
    }
}

/// All documents of a find of the session.
async fn all(
    session: &mut ClientSession,
    from: &Collection<RawDocumentBuf>,
    filter: Document,
    options: FindOptions,
) -> Result<Vec<RawDocumentBuf>, Fault> {
    let mut cursor = from.find(filter).with_options(options).session(&mut *session).await?;
    Ok(cursor.stream(session).try_collect().await?)
}
