//! A view of all users at one moment: the snapshot that reads use, kept for as long as it takes.
//! Meanwhile the database reuses no page that was freed since.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use async_trait::async_trait;
use locality_uuid::LocalityId;
use tokio::task::{spawn_blocking, yield_now};

use super::backup;
use super::error::Fault;
use super::read::Snapshot;
use super::{Embedded, YIELD_EVERY};
use crate::directory::error::Error;
use crate::directory::model::record::Hold;
use crate::directory::model::tenant::Tenant;
use crate::directory::model::tenant_record::TenantRecord;
use crate::directory::store::FileStore;
use crate::directory::user_scan::UserScan;
use crate::identifier::IdentityKey;
use crate::wire::exported_user::ExportedUser;

impl FileStore for Embedded {
    fn copy(&self) -> Result<File, Error> {
        let snapshot = self.published.load_full().ok_or_else(|| self.closed())?;
        Ok(backup::copy(&snapshot.transaction, &self.folder)?)
    }
}

/// A view of all users at one moment.
pub struct View(pub Arc<Snapshot>);

impl View {
    /// Looks at the snapshot. The database panics where a page that it trusts makes no sense.
    fn look<T>(&self, look: impl FnOnce(&Snapshot) -> Result<T, Fault>) -> Result<T, Fault> {
        let looked = catch_unwind(AssertUnwindSafe(|| look(&self.0)));
        looked.unwrap_or(Err(Fault::Panicked))
    }
}

#[async_trait]
impl UserScan for View {
    fn is_lasting(&self) -> bool {
        true
    }

    async fn tenant(&self, name: &Tenant) -> Result<Option<Option<TenantRecord>>, Error> {
        Ok(Some(self.look(|snapshot| snapshot.tenant(name))?))
    }

    async fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Option<Vec<ExportedUser>>, Error> {
        // A caller who reads page after page must not hold up others.
        yield_now().await;
        let (mut users, mut after) = (Vec::new(), after);
        loop {
            let count = limit.max(YIELD_EVERY);
            let scan = |snapshot: &Snapshot| snapshot.scan(tenant, after, count, Snapshot::export);
            let scanned = self.look(scan)?;
            users.extend(scanned.users);
            after = scanned.last;
            if after.is_none() || users.len() >= limit {
                users.truncate(limit);
                return Ok(Some(users));
            }
        }
    }

    async fn ownerless_holds(
        &self,
        tenant: &Tenant,
        after: Option<&IdentityKey>,
        limit: usize,
    ) -> Result<Option<Vec<Hold>>, Error> {
        // It goes through all claims.
        let (view, tenant, after) = (Self(self.0.clone()), tenant.clone(), after.cloned());
        let look =
            move || view.look(|snapshot| snapshot.ownerless_holds(&tenant, after.as_ref(), limit));
        let holds = spawn_blocking(look).await.map_err(|error| Error::Internal(error.into()))?;
        Ok(Some(holds?))
    }
}
