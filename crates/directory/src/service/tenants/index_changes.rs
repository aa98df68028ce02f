//! Changes of indexes: after a tenant has defined an attribute as indexed or not indexed, the
//! servers store the users that have the attribute again.

use crate::error::Error;
use crate::model::policies::Policies;
use crate::model::record::Record;
use crate::model::tenant::Tenant;
use crate::mutation::TenantChange;
use crate::service::Directory;
use crate::tenant_queue::TenantJob;

/// Users in one read.
const PAGE_SIZE: usize = 500;

impl Directory {
    /// Stores the users of a tenant again that have an attribute whose index changes, and removes
    /// the mark of the change unless the tenant has a later one. Safe on several servers: storing a
    /// user twice changes nothing, so any server can start over.
    pub(crate) async fn change_index(&self, name: &Tenant) -> Result<(), Error> {
        let Some((known, time)) = self.marked_tenant(TenantJob::IndexChange, name).await? else {
            return Ok(());
        };
        let (mut after, mut stored, mut unreadable) = (None, 0, 0);
        loop {
            let page = self.backend.search.scan(name, after, PAGE_SIZE).await?;
            let changed = page.readable().filter(|record| has_changing(record, &known.policies));
            stored += self.store_again(name, &known, changed.map(Record::id)).await?;
            for user in page.unreadable() {
                unreadable += 1;
                tracing::warn!(tenant = %name, %user, "a user cannot be read: its index stays");
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }

        self.finish_job(name, known, TenantChange::FinishIndexChanges(time)).await?;
        tracing::info!(tenant = %name, users = stored, unreadable,
            "changed the index of attributes");
        Ok(())
    }
}

fn has_changing(record: &Record, policies: &Policies) -> bool {
    record.user.attributes.keys().any(|name| policies.is_index_changing(name))
}
