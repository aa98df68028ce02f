//! Exports a tenant and its users.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use locality_uuid::LocalityId;

use crate::encoded::exported_user::ExportedUser;
use crate::error::Error;
use crate::model::record::Hold;
use crate::model::tenant::Tenant;
use crate::model::tenant_record::TenantRecord;
use crate::service::Directory;
use crate::service::read_size::ReadSize;
use crate::stores::ExportSnapshot;
use polynym_identifier::IdentityKey;

/// Users in the first page, users in any later one, and holds in a page.
const FIRST_PAGE: usize = 32;
const MAX_PAGE: usize = 256;

/// Cancels a copy of the store when it is dropped.
#[derive(Default)]
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// An export in progress.
pub struct Export {
    directory: Arc<Directory>,
    tenant: Tenant,
    /// The snapshot, until the store drops it.
    snapshot: Option<Box<dyn ExportSnapshot>>,
    after: Option<LocalityId>,
    has_users: bool,
    read_size: ReadSize,
    /// The key of the last hold without an owner.
    after_hold: Option<IdentityKey>,
}

impl Directory {
    /// Copies the store to a file that is removed with its last handle. Waits until no other copy
    /// is being made. Dropping the future cancels the copy.
    ///
    /// # Errors
    /// [`Error::BackupUnsupported`] if the store is not a file; [`Error::DiskFull`];
    /// [`Error::Unavailable`].
    pub async fn backup(&self) -> Result<File, Error> {
        let store = self.backend.file.clone().ok_or(Error::BackupUnsupported)?;
        let permit = self.copying.clone().acquire_owned().await;
        let permit = permit.map_err(|error| Error::Internal(error.into()))?;
        let cancellation = CancelOnDrop::default();
        let is_cancelled = cancellation.0.clone();
        // A copy that is being cancelled keeps its permit until it has ended.
        let copy = move || (store.copy(&is_cancelled), permit);
        let copied = tokio::task::spawn_blocking(copy).await;
        copied.map_err(|error| Error::Internal(error.into()))?.0
    }

    /// Begins an export of a tenant. Returns the tenant's record, if it has one.
    ///
    /// # Errors
    /// [`Error::TenantNotFound`], except for the default tenant; [`Error::Unavailable`].
    pub async fn begin_export(
        self: &Arc<Self>,
        tenant: Tenant,
    ) -> Result<(Export, Option<TenantRecord>), Error> {
        let snapshot = self.backend.search.snapshot().await?;
        let in_snapshot = match &snapshot {
            Some(snapshot) => snapshot.tenant(&tenant).await?,
            None => None,
        };
        let (snapshot, record) = match in_snapshot {
            Some(record) => (snapshot, record),
            None => (None, self.backend.tenants.tenant(&tenant).await?),
        };
        if record.is_none() && tenant != Tenant::DEFAULT {
            return Err(Error::TenantNotFound);
        }
        let (directory, read_size) = (self.clone(), ReadSize::new(FIRST_PAGE, MAX_PAGE));
        let export = Export {
            directory,
            tenant,
            snapshot,
            after: None,
            has_users: true,
            read_size,
            after_hold: None,
        };
        Ok((export, record))
    }
}

impl Export {
    /// Whether everything returned so far comes from one snapshot.
    pub const fn is_exact(&self) -> bool {
        self.snapshot.is_some()
    }

    /// The next users, in the order of their ids, and the ids of those that cannot be read; none at
    /// the end.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    pub async fn page(&mut self) -> Result<Option<Vec<Result<ExportedUser, LocalityId>>>, Error> {
        if !self.has_users {
            return Ok(None);
        }
        let limit = self.read_size.users();
        let in_snapshot = match &self.snapshot {
            Some(snapshot) => snapshot.scan(&self.tenant, self.after, limit).await?,
            None => None,
        };
        let scanned = match in_snapshot {
            Some(scanned) => scanned,
            None => {
                self.snapshot = None;
                let search = &self.directory.backend.search;
                let scanned = search.scan(&self.tenant, self.after, limit).await?;
                scanned.map(|record| ExportedUser::of(&record))
            }
        };
        let size = |user: &ExportedUser| user.user.as_bytes().len() + user.internals.len();
        self.read_size.adapt(scanned.users.len(), scanned.readable().map(size).sum());
        (self.after, self.has_users) = (scanned.next, scanned.next.is_some());
        Ok(Some(scanned.users))
    }

    /// The next holds on identifiers whose owner was purged, in the order of their keys; none at
    /// the end.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    pub async fn holds(&mut self) -> Result<Vec<Hold>, Error> {
        let (tenant, after) = (&self.tenant, self.after_hold.take());
        let in_snapshot = match &self.snapshot {
            Some(snapshot) => snapshot.ownerless_holds(tenant, after.as_ref(), MAX_PAGE).await?,
            None => None,
        };
        let holds = match in_snapshot {
            Some(holds) => holds,
            None => {
                self.snapshot = None;
                self.directory
                    .backend
                    .tenants
                    .ownerless_holds(tenant, after.as_ref(), MAX_PAGE)
                    .await?
            }
        };
        self.after_hold = holds.last().map(|hold| hold.key.clone());
        Ok(holds)
    }
}
