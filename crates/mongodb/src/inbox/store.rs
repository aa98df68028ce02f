//! The calls of an inbox store.

use std::sync::Arc;

use async_trait::async_trait;
use locality_uuid::LocalityId;
use tokio::sync::OwnedSemaphorePermit;

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::database::operations::{Mongo, holding};
use crate::inbox::inboxes::InboxWork;
use crate::inbox::row::position;
use polynym_directory::{
    BegunNotice, Delivery, Error, IdempotencyKey, InboxChange, Inboxes, Notice, Now, Tenant,
    Timestamp, stores::InboxEntry,
};
use polynym_store_common::operations::{Operation, measure};

#[async_trait]
impl Inboxes for Mongo {
    async fn begin_notice(
        &self,
        request: &IdempotencyKey,
        tenant_since: Timestamp,
        notice: Option<LocalityId>,
        now: Now,
    ) -> Result<Option<BegunNotice>, Error> {
        let request = request.clone();
        let begin = |collections: Arc<Collections>| async move {
            collections.begin_notice(&request, tenant_since, notice, now).await
        };
        let write = async { self.run_sharing(&self.shares.writes, begin).await? };
        measure(Operation::Inbox, write).await
    }

    async fn deliver(&self, delivery: Arc<Delivery>) -> Result<Vec<bool>, Error> {
        let own = self.collections();
        self.write_parts(async move { own.deliver(&delivery).await }).await
    }

    async fn holders(
        &self,
        notice: LocalityId,
        send_time: Timestamp,
        users: &[LocalityId],
    ) -> Result<Vec<LocalityId>, Error> {
        let (position, users) = (position(notice, send_time), users.to_vec());
        self.read(Operation::Inbox, |collections| async move {
            collections.check_versions()?;
            collections.holders(position, users).await
        })
        .await
    }

    async fn inboxes(
        &self,
        tenant: &Tenant,
        user: LocalityId,
    ) -> Result<Option<Vec<LocalityId>>, Error> {
        let tenant = tenant.clone();
        let find = |collections: Arc<Collections>| async move {
            collections.check_versions()?;
            collections.inboxes(&tenant, user).await
        };
        let read = async { self.run_sharing(&self.shares.reads, find).await? };
        measure(Operation::Inbox, read).await
    }

    async fn inbox(
        &self,
        user: LocalityId,
        before: Option<u128>,
        limit: usize,
        with_content: bool,
    ) -> Result<Vec<InboxEntry>, Error> {
        self.read(Operation::Inbox, |collections| async move {
            collections.check_versions()?;
            collections.inbox(user, before, limit, with_content).await
        })
        .await
    }

    async fn oldest(&self, user: LocalityId, count: u64) -> Result<Option<Notice>, Error> {
        self.read(Operation::Inbox, |collections| async move {
            collections.check_versions()?;
            collections.oldest(user, count).await
        })
        .await
    }

    async fn change_inbox(&self, user: LocalityId, change: InboxChange) -> Result<(), Error> {
        let own = self.collections();
        self.write_parts(async move { own.change_inbox(user, &change).await }).await
    }
}

impl Mongo {
    /// Runs a write of several parts on a task, as one operation, and the clean-up after it. Once
    /// it has begun, a failure may leave some of the parts written.
    pub(crate) async fn write_parts<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<(T, InboxWork), Fault>> + Send + 'static,
    ) -> Result<T, Error> {
        let write = async {
            self.version_guard.versions()?;
            let permit = self.shares.writes.take(1, self.deadline()).await?;
            let work = self.clone().then_clean_up(permit, work);
            let task = self.spawn(self.abandoned(), Fault::CommitUnanswered, work)?;
            self.ended(task).await.map_err(|fault| match fault.into() {
                Error::Unavailable(cause) => Error::OutcomeUnknown(cause),
                other => other,
            })
        };
        measure(Operation::Inbox, write).await
    }

    /// The output of a write. The clean-up after it is an operation of its own, for which the
    /// caller does not wait, and which keeps the permit: it needs a connection, too.
    pub(crate) async fn then_clean_up<T, E>(
        self,
        permit: OwnedSemaphorePermit,
        work: impl Future<Output = Result<(T, InboxWork), E>>,
    ) -> Result<T, E> {
        let (done, inboxes) = work.await?;
        if !inboxes.is_empty() {
            let own = self.collections();
            let clean_up = async move { own.clean_up_inboxes(inboxes).await };
            match self.counted(holding(permit, clean_up)) {
                Ok(clean_up) => drop(tokio::spawn(clean_up)),
                Err(fault) => tracing::warn!(%fault, "inboxes were not cleaned up"),
            }
        }
        Ok(done)
    }
}
