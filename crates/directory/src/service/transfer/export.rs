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

pub mod position;

use position::ExportPosition;

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
    position: ExportPosition,
    /// Whether an earlier export had the users before the position where this one began.
    is_resumed: bool,
    read_size: ReadSize,
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

    /// Begins an export of a tenant, or continues one after the position of a token. Returns the
    /// tenant's record, if it has one.
    ///
    /// # Errors
    /// [`Error::TenantNotFound`], except for the default tenant; [`Error::Invalid`] if the token is
    /// not of an export of this tenant, or older than a day; [`Error::Unavailable`].
    pub async fn begin_export(
        self: &Arc<Self>,
        tenant: Tenant,
        page_token: &str,
    ) -> Result<(Export, Option<TenantRecord>), Error> {
        let (key, now) = (&self.backend.token_key, self.now().time);
        let position = ExportPosition::open(key, page_token, &tenant, now)?;
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
        let is_resumed = !page_token.is_empty();
        let export = Export { directory, tenant, snapshot, position, is_resumed, read_size };
        Ok((export, record))
    }
}

impl Export {
    /// Whether everything so far comes from one snapshot.
    pub const fn is_exact(&self) -> bool {
        self.snapshot.is_some() && !self.is_resumed
    }

    /// Whether the export continues an earlier one.
    pub const fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// The token from which another export continues at this position.
    pub fn token(&self, position: &ExportPosition) -> String {
        let (directory, tenant) = (&self.directory, &self.tenant);
        position.seal(&directory.backend.token_key, tenant, directory.now().time)
    }

    /// The next users, in the order of their ids, and the ids of those that cannot be read; none at
    /// the end.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    pub async fn page(&mut self) -> Result<Option<Vec<Result<ExportedUser, LocalityId>>>, Error> {
        let ExportPosition::Users(after) = self.position else { return Ok(None) };
        let limit = self.read_size.users();
        let in_snapshot = match &self.snapshot {
            Some(snapshot) => snapshot.scan(&self.tenant, after, limit).await?,
            None => None,
        };
        let scanned = match in_snapshot {
            Some(scanned) => scanned,
            None => {
                self.snapshot = None;
                let search = &self.directory.backend.search;
                let scanned = search.scan(&self.tenant, after, limit).await?;
                scanned.map(|record| ExportedUser::from_record(&record))
            }
        };
        let size = |user: &ExportedUser| user.user.as_bytes().len() + user.internals.len();
        self.read_size.adapt(scanned.users.len(), scanned.readable().map(size).sum());
        self.position = match scanned.next {
            Some(last) => ExportPosition::Users(Some(last)),
            None => ExportPosition::Holds(None),
        };
        Ok(Some(scanned.users))
    }

    /// The next holds on identifiers whose owner was purged, in the order of their keys; none at
    /// the end.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the store does not answer.
    pub async fn holds(&mut self) -> Result<Vec<Hold>, Error> {
        let ExportPosition::Holds(after) = &self.position else { return Ok(Vec::new()) };
        let tenant = &self.tenant;
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
        if let Some(last) = holds.last() {
            self.position = ExportPosition::Holds(Some(last.key.clone()));
        }
        Ok(holds)
    }
}
