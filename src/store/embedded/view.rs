//! A view of all users at one moment: the snapshot that reads use, kept for as long as it takes.
//! Meanwhile the database reuses no page that was freed since.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use locality_uuid::LocalityId;

use super::backup;
use super::error::Fault;
use super::read::Snapshot;
use super::{Embedded, YIELD_EVERY};
use crate::directory::error::Error;
use crate::directory::model::record::Hold;
use crate::directory::model::tenant::Tenant;
use crate::directory::store::{FileStore, UserScan};
use crate::identifier::IdentityKey;
use crate::wire::exported_user::ExportedUser;

impl FileStore for Embedded {
    fn view(&self) -> Result<Box<dyn UserScan>, Error> {
        let snapshot = self.published.load_full().ok_or_else(|| self.closed())?;
        Ok(Box::new(View(snapshot)))
    }

    fn copy(&self) -> Result<File, Error> {
        let snapshot = self.published.load_full().ok_or_else(|| self.closed())?;
        Ok(backup::copy(&snapshot.transaction, &self.folder)?)
    }
}

struct View(Arc<Snapshot>);

impl UserScan for View {
    fn scan(
        &self,
        tenant: &Tenant,
        after: Option<LocalityId>,
        limit: usize,
    ) -> Result<Vec<ExportedUser>, Error> {
        let (mut users, mut after) = (Vec::new(), after);
        loop {
            // The database panics where a page that it trusts makes no sense.
            let count = limit.max(YIELD_EVERY);
            let look = AssertUnwindSafe(|| self.0.scan(tenant, after, count, Snapshot::export));
            let scanned = catch_unwind(look).unwrap_or(Err(Fault::Panicked))?;
            users.extend(scanned.users);
            after = scanned.last;
            if after.is_none() || users.len() >= limit {
                users.truncate(limit);
                return Ok(users);
            }
        }
    }

    fn ownerless_holds(
        &self,
        tenant: &Tenant,
        after: Option<&IdentityKey>,
        limit: usize,
    ) -> Result<Vec<Hold>, Error> {
        let look = AssertUnwindSafe(|| self.0.ownerless_holds(tenant, after, limit));
        Ok(catch_unwind(look).unwrap_or(Err(Fault::Panicked))?)
    }
}
