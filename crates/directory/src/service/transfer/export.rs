//! Exports a tenant and its users.

use std::fs::File;
use std::sync::Arc;

use locality_uuid::LocalityId;
use tokio::sync::OwnedSemaphorePermit;

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
/// A copy of the store.
#[derive(Debug)]
pub struct StoreCopy {
    /// The file.
    pub file: File,
    _permit: OwnedSemaphorePermit,
}

/// An export in progress.
pub struct Export {
    directory: Arc<Directory>,
    tenant: Tenant,
    /// The snapshot, until the store drops it.
    snapshot: Option<Box<dyn ExportSnapshot>>,
    after: Option<LocalityId>,
    read_size: ReadSize,
    /// The key of the last hold without an owner.
    after_hold: Option<IdentityKey>,
}

impl Directory {
    /// Copies the store to a file that is removed with the copy.
    ///
    /// # Errors
    /// [`Error::BackupUnsupported`] if the store is not a file; [`Error::Overloaded`] while too
    /// many copies exist; [`Error::Unavailable`].
    pub async fn backup(&self) -> Result<StoreCopy, Error> {
        let store = self.backend.file.clone().ok_or(Error::BackupUnsupported)?;
        let permit = self.copies.clone().try_acquire_owned().map_err(|_| Error::Overloaded)?;
        // The copy goes on if the caller leaves, and its permit with it.
        let copy = move || store.copy().map(|file| StoreCopy { file, _permit: permit });
        let copied = tokio::task::spawn_blocking(copy).await;
        copied.map_err(|error| Error::Internal(error.into()))?
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
        let export =
            Export { directory, tenant, snapshot, after: None, read_size, after_hold: None };
        Ok((export, record))
    }
}

impl Export {
    /// Whether everything returned so far comes from one snapshot.
    pub const fn is_exact(&self) -> bool {
        self.snapshot.is_some()
    }

    /// Whether the rest will come from the snapshot too.
    pub fn stays_exact(&self) -> bool {
        self.snapshot.as_ref().is_some_and(|snapshot| snapshot.is_lasting())
    }

    /// The next users, in the order of their ids; none at the end.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    pub async fn page(&mut self) -> Result<Vec<ExportedUser>, Error> {
        let limit = self.read_size.users();
        let in_snapshot = match &self.snapshot {
            Some(snapshot) => snapshot.scan(&self.tenant, self.after, limit).await?,
            None => None,
        };
        let users = match in_snapshot {
            Some(users) => users,
            None => {
                self.snapshot = None;
                let search = &self.directory.backend.search;
                let records = search.scan(&self.tenant, self.after, limit).await?;
                records.iter().map(ExportedUser::of).collect()
            }
        };
        let size = |user: &ExportedUser| user.user.as_bytes().len() + user.internals.len();
        self.read_size.adapt(users.len(), users.iter().map(size).sum());
        self.after = users.last().map(|user| user.id).or(self.after);
        Ok(users)
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
