//! The reads of one caller in order, each as an operation that continues if its caller leaves.

use std::sync::Arc;

use async_trait::async_trait;
use locality_uuid::LocalityId;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::database::operations::Mongo;
use crate::database::ordered::OrderedFinds;
use crate::lookup::find::ReadMode;
use crate::lookup::resolve::of_tenant;
use polynym_directory::{
    Claim, EncodedUser, EndedOwnerships, Error, History, ItemResult, OrderedReads, PageLimit,
    Tenant, View,
};
use polynym_identifier::IdentityKey;
use polynym_store_common::operations::Operation;

/// The finds of a sequence: one read at a time.
type Finds = OwnedMutexGuard<OrderedFinds>;

/// Reads in order.
pub struct ReadSequence {
    store: Mongo,
    finds: Arc<Mutex<OrderedFinds>>,
}

impl ReadSequence {
    /// Begins reads in order.
    ///
    /// # Errors
    /// The driver's.
    pub async fn begin(store: &Mongo) -> Result<Self, Fault> {
        let store = store.pinned();
        let finds = Arc::new(Mutex::new(store.collections().in_order().await?));
        Ok(Self { store, finds })
    }

    /// Runs the next read, as one operation.
    async fn next<T, F>(
        &self,
        operation: Operation,
        read: impl FnOnce(Arc<Collections>, Finds) -> F,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        let finds = self.finds.clone().lock_owned().await;
        self.store.read(operation, |collections| read(collections, finds)).await
    }
}

#[async_trait]
impl OrderedReads for ReadSequence {
    async fn claims(&mut self, keys: &[IdentityKey]) -> Result<Vec<Option<Claim>>, Error> {
        let keys = keys.to_vec();
        let read = |collections: Arc<Collections>, mut finds: Finds| async move {
            collections.claims(&mut finds, &keys).await
        };
        self.next(Operation::Claims, read).await
    }

    async fn ended_ownerships(
        &mut self,
        keys: &[IdentityKey],
    ) -> Result<Vec<EndedOwnerships>, Error> {
        let keys = keys.to_vec();
        let read = |collections: Arc<Collections>, mut finds: Finds| async move {
            collections.ended_ownerships(&mut finds, &keys).await
        };
        self.next(Operation::Scan, read).await
    }

    async fn get(
        &mut self,
        tenant: &Tenant,
        ids: &[LocalityId],
        view: View,
    ) -> Result<Vec<ItemResult<EncodedUser>>, Error> {
        let (tenant, ids) = (tenant.clone(), ids.to_vec());
        self.next(Operation::Get, |collections, mut finds| async move {
            let mut mode = ReadMode::Ordered { finds: &mut finds, time: collections.timeout };
            let ids = ids.iter().copied().map(Some);
            let (users, _) = collections.users(ids, &mut mode, view).await?;
            Ok(of_tenant(&tenant, users))
        })
        .await
    }

    async fn history(
        &mut self,
        tenant: &Tenant,
        user: LocalityId,
        cursor: Option<u64>,
        limit: PageLimit,
    ) -> Result<Option<History>, Error> {
        let tenant = tenant.clone();
        self.next(Operation::Scan, |collections, mut finds| async move {
            collections.history(&mut finds, &tenant, user, cursor, limit).await
        })
        .await
    }
}
