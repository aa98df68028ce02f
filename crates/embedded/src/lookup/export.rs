//! A snapshot for exports. While it is in use, the database reuses no page that was freed since.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use async_trait::async_trait;
use locality_uuid::LocalityId;
use tokio::task::{spawn_blocking, yield_now};

use crate::error::Fault;
use crate::lookup::snapshot::{Snapshot, YIELD_EVERY};
use polynym_directory::encoded::exported_user::ExportedUser;
use polynym_directory::error::Error;
use polynym_directory::model::record::Hold;
use polynym_directory::model::tenant::Tenant;
use polynym_directory::model::tenant_record::TenantRecord;
use polynym_directory::stores::ExportSnapshot;
use polynym_identifier::IdentityKey;

/// All users at one commit.
pub struct SnapshotExport(pub Arc<Snapshot>);

impl SnapshotExport {
    /// Reads from the snapshot. The database panics on an invalid page that it trusts.
    fn read<T>(&self, read: impl FnOnce(&Snapshot) -> Result<T, Fault>) -> Result<T, Fault> {
        catch_unwind(AssertUnwindSafe(|| read(&self.0))).unwrap_or(Err(Fault::Panicked))
    }
}

#[async_trait]
impl ExportSnapshot for SnapshotExport {
    fn is_lasting(&self) -> bool {
        true
    }

    async fn tenant(&self, name: &Tenant) -> Result<Option<Option<TenantRecord>>, Error> {
        Ok(Some(self.read(|snapshot| snapshot.tenant(name))?))
    }

    async fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Option<Vec<ExportedUser>>, Error> {
        // A caller that reads all pages must not delay others.
        yield_now().await;
        let (mut users, mut after) = (Vec::new(), after);
        loop {
            let count = limit.max(YIELD_EVERY);
            let scan = |snapshot: &Snapshot| snapshot.scan(tenant, after, count, Snapshot::export);
            let scanned = self.read(scan)?;
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
        let (export, tenant, after) = (Self(self.0.clone()), tenant.clone(), after.cloned());
        // Reads all claims.
        let read_holds = move || {
            export.read(|snapshot| snapshot.ownerless_holds(&tenant, after.as_ref(), limit))
        };
        let holds =
            spawn_blocking(read_holds).await.map_err(|error| Error::Internal(error.into()))?;
        Ok(Some(holds?))
    }
}
