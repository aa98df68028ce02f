//! What happens without a call: users whose time is over are purged, and what undoes old merges is forgotten.

use std::convert::Infallible;
use std::time::Duration;

use super::{Change, Directory, Error, Mutation, Tenant, Timestamp};
use crate::locality::LocalityId;

/// How often the store is asked what is due.
const PERIOD: Duration = Duration::from_secs(1);
/// How much is asked for at once.
const PAGE: usize = 100;

impl Directory {
    /// Does what is due, again and again. Every server may: what one has done, is not due for another.
    pub async fn tend(&self) -> Infallible {
        loop {
            match self.tend_once().await {
                Ok(PAGE..) => {}
                Ok(_) => tokio::time::sleep(PERIOD).await,
                Err(error) => {
                    tracing::warn!(%error, "what is due could not be done: it will be tried again");
                    tokio::time::sleep(10 * PERIOD).await;
                }
            }
        }
    }

    /// Does what is due now, a page of it; tells how much that was. What fails for one user keeps no other waiting.
    async fn tend_once(&self) -> Result<usize, Error> {
        let due = self.store.due(Timestamp::now(), PAGE).await?;
        let mut done = Ok(due.len());
        for (tenant, id) in due {
            if let Err(error) = self.tend_user(tenant, id).await {
                done = Err(error);
            }
        }
        done
    }

    async fn tend_user(&self, tenant: Tenant, id: LocalityId) -> Result<(), Error> {
        let policies = self.tenants.policies(&*self.store, &tenant).await?.unwrap_or_default();
        let mutation = Mutation::new(tenant, id, Timestamp::now(), Change::Tend);
        let outcome = self.store.mutate(Mutation { policies, ..mutation }).await?;
        if let super::Report::Purged(users) = outcome.report {
            tracing::info!(user = %id, users = users.len(), "purged");
        }
        Ok(())
    }
}
