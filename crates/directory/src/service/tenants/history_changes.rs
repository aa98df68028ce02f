//! Shorter retentions of history: older events are hidden at once, and the servers remove them.

use crate::error::Error;
use crate::model::shortening::Shortening;
use crate::model::tenant::Tenant;
use crate::mutation::TenantChange;
use crate::service::Directory;
use crate::tenant_queue::TenantJob;

impl Directory {
    /// Shortens the history of a tenant. Safe on several servers: a part that has its date keeps
    /// it, so any server can start over.
    pub(crate) async fn shorten_history(&self, name: &Tenant) -> Result<(), Error> {
        let Some((known, time)) = self.marked_tenant(TenantJob::HistoryChange, name).await? else {
            return Ok(());
        };
        let now = self.gauged_now();
        if now.clock_uncertain {
            return Err(Error::ClockInDoubt);
        }

        let by = Shortening { retention: known.policies.history_retention, now: now.time };
        let mut cursor = None;
        loop {
            let part = self.backend.histories.shorten_history(name, by, cursor).await?;
            self.store_again(name, &known, part.users.into_iter()).await?;
            cursor = part.next;
            if cursor.is_none() {
                break;
            }
        }

        self.finish_job(name, known, TenantChange::FinishHistoryChange(time)).await?;
        tracing::info!(tenant = %name, "removed older history");
        Ok(())
    }
}
