//! Deleting tenants: a call marks the tenant, and servers remove it with all that is in it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use locality_uuid::LocalityId;
use tokio::time::sleep;

use super::tenant_cache::{FRESH, KnownTenant, RETRY};
use super::write::RequestContext;
use crate::directory::Directory;
use crate::directory::error::Error;
use crate::directory::model::policies::Policies;
use crate::directory::model::record::Record;
use crate::directory::model::tenant::Tenant;
use crate::directory::model::timestamp::Timestamp;
use crate::directory::model::user::State;
use crate::directory::mutation::tenancy::{DeletionStep, TenantRecord};
use crate::directory::mutation::{Mutation, MutationKind};
use crate::directory::read_set::MutationReport;
use crate::identifier::IdentityKey;

/// How often tenants are looked for that other servers have marked.
const SEARCH: Duration = Duration::from_secs(30);
/// How often marked tenants are looked at.
const PERIOD: Duration = Duration::from_secs(1);
/// How long a mark must be known before anything is removed. A server may rely on what it knew of
/// the tenant before for so long as policies count, and may then take the time of a call to finish
/// what it has begun.
const QUIET: Duration = FRESH.saturating_add(RETRY).saturating_add(Duration::from_secs(10));
/// How long a tenant is left alone after something went wrong.
const PAUSE: Duration = Duration::from_secs(10);
/// How many tenants, users or keys are looked at in one step.
const PAGE: usize = 100;
/// How many users are purged at once.
const AT_ONCE: usize = 16;
/// How many merges may lead from a user to the one who has it now.
const HOPS: usize = 100;

/// The tenants that are marked, as far as this server knows.
#[derive(Default)]
pub struct Deletions(Mutex<HashMap<Tenant, Marked>>);

/// A tenant that is marked.
struct Marked {
    /// Since when: a tenant of the same name may have been made, and marked, again.
    since: Timestamp,
    /// The earliest time of the next step.
    next: Instant,
}

impl Deletions {
    /// Notes a mark, and when to begin, unless it is noted already.
    fn add(&self, tenant: Tenant, since: Timestamp) {
        if !self.has(&tenant, since) {
            self.lock().insert(tenant, Marked { since, next: Instant::now() + QUIET });
        }
    }

    fn has(&self, tenant: &Tenant, since: Timestamp) -> bool {
        self.lock().get(tenant).is_some_and(|marked| marked.since == since)
    }

    /// The tenants whose time has come.
    fn due(&self) -> Vec<Tenant> {
        let now = Instant::now();
        let marked = self.lock();
        marked
            .iter()
            .filter(|(_, marked)| marked.next <= now)
            .map(|(tenant, _)| tenant.clone())
            .collect()
    }

    fn postpone(&self, tenant: &Tenant) {
        if let Some(marked) = self.lock().get_mut(tenant) {
            marked.next = Instant::now() + PAUSE;
        }
    }

    fn remove(&self, tenant: &Tenant) {
        self.lock().remove(tenant);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Tenant, Marked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a step has come to.
enum Step {
    More,
    Done,
    /// It is too early.
    Wait,
}

impl Directory {
    /// Marks a tenant to be deleted, with its users or only if it has none. Answers with the
    /// tenant, or with none where the call was made before and the tenant is gone.
    ///
    /// # Errors
    /// [`Error::TenantNotFound`], [`Error::TenantNotEmpty`], [`Error::EtagMismatch`], and those of
    /// [`crate::directory::store::Store::mutate`].
    pub async fn delete_tenant(
        &self,
        call: RequestContext<'_>,
        with_users: bool,
    ) -> Result<Option<TenantRecord>, Error> {
        let (name, dry_run) = (call.tenant.clone(), call.dry_run);
        let change = MutationKind::DeleteTenant(DeletionStep::Begin { with_users });
        let mutation = self.mutation(call, self.ids.next_id(), change, Arc::default())?;
        let began = Instant::now();
        let MutationReport::Tenant(tenant) = self.store.mutate(mutation).await?.report else {
            return Ok(None);
        };

        if let (Some(deletion), false) = (tenant.deletion, dry_run) {
            self.tenants.learn_change(&name, Some(KnownTenant::from(&*tenant)), began);
            self.deletions.add(name, deletion.time);
        }
        Ok(Some(*tenant))
    }

    /// Deletes the tenants that are marked, again and again. Every server may: what one has
    /// removed, is gone for others.
    pub async fn delete_marked_tenants(&self) -> Infallible {
        let mut searched: Option<Instant> = None;
        loop {
            if searched.is_none_or(|searched| searched.elapsed() >= SEARCH) {
                searched = Some(Instant::now());
                if let Err(error) = self.find_marked_tenants().await {
                    tracing::warn!(%error, "tenants that are to be deleted were not looked for: tried again");
                }
            }
            for tenant in self.deletions.due() {
                self.delete_marked_tenant(&tenant).await;
            }
            sleep(PERIOD).await;
        }
    }

    async fn find_marked_tenants(&self) -> Result<(), Error> {
        let mut after = String::new();
        loop {
            let page = self.store.tenants("", &after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.name.to_string();
            for tenant in page {
                if let Some(deletion) = tenant.deletion {
                    self.deletions.add(tenant.name, deletion.time);
                }
            }
        }
    }

    async fn delete_marked_tenant(&self, name: &Tenant) {
        loop {
            match self.deletion_step(name).await {
                Ok(Step::More) => {}
                Ok(Step::Wait) => return,
                Ok(Step::Done) => return self.deletions.remove(name),
                Err(error) => {
                    tracing::warn!(tenant = %name, %error, pause = ?PAUSE, "the tenant is not deleted yet: tried again");
                    return self.deletions.postpone(name);
                }
            }
        }
    }

    /// Users go first, then what is held of theirs, then the tenant: until then the mark says what
    /// is to be done.
    async fn deletion_step(&self, name: &Tenant) -> Result<Step, Error> {
        let tenant = self.store.tenant(name).await?;
        let Some(deletion) = tenant.and_then(|tenant| tenant.deletion) else {
            return Ok(Step::Done);
        };

        if !self.deletions.has(name, deletion.time) {
            self.deletions.add(name.clone(), deletion.time);
            return Ok(Step::Wait);
        }

        let users = self.store.scan(name, None, PAGE).await?;
        if !users.is_empty() && !deletion.with_users {
            self.finish_deletion(name, DeletionStep::GiveUp).await?;
            tracing::warn!(tenant = %name, "the tenant is not deleted: it has users now");
            return Ok(Step::Done);
        }
        if !users.is_empty() {
            self.purge_all(name, &users).await?;
            return Ok(Step::More);
        }

        let keys = self.store.keys(name, PAGE).await?;
        if !keys.is_empty() {
            self.forget(name, keys).await?;
            return Ok(Step::More);
        }
        self.finish_deletion(name, DeletionStep::Finish).await?;
        tracing::info!(tenant = %name, "the tenant is deleted");
        Ok(Step::Done)
    }

    async fn finish_deletion(&self, name: &Tenant, step: DeletionStep) -> Result<(), Error> {
        let began = Instant::now();
        self.take_step(name, self.ids.next_id(), MutationKind::DeleteTenant(step)).await?;
        let tenant = self.store.tenant(name).await?;
        self.tenants.learn_change(name, tenant.as_ref().map(KnownTenant::from), began);
        Ok(())
    }

    async fn forget(&self, name: &Tenant, keys: Vec<IdentityKey>) -> Result<(), Error> {
        let change = MutationKind::DeleteTenant(DeletionStep::Forget(keys));
        self.take_step(name, self.ids.next_id(), change).await.map(drop)
    }

    /// Purges users. Fails where none of them can be.
    async fn purge_all(&self, name: &Tenant, users: &[Record]) -> Result<(), Error> {
        let purges = users.iter().map(|record| self.purge_whole(name, record));
        let mut purges = stream::iter(purges.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
        let mut gone = 0;
        while let Some(purged) = purges.next().await {
            gone += purged?;
        }
        if gone == 0 {
            return Err(Error::Internal(
                "none of the tenant's users can be purged: run `polynym store verify`".into(),
            ));
        }
        Ok(())
    }

    /// Purges a user, with the one that it was merged into. Answers how many are gone.
    async fn purge_whole(&self, name: &Tenant, record: &Record) -> Result<usize, Error> {
        let mut id = record.id();
        // One whose time is over counts as gone already, but for what tends users.
        let mut change = match record.user.state {
            State::Deleted { purge_time, .. } if self.now().is_past(purge_time) => {
                MutationKind::Expire
            }
            _ => MutationKind::Purge,
        };
        for _ in 0..HOPS {
            match self.take_step(name, id, change.clone()).await {
                Ok(MutationReport::Purged(users)) => return Ok(users.len()),
                Ok(_) | Err(Error::UserNotFound) if change == MutationKind::Purge => {
                    change = MutationKind::Expire
                }
                Ok(_) | Err(Error::UserNotFound) => return Ok(0),
                Err(Error::UserMerged { into, .. }) => id = into,
                Err(error) => return Err(error),
            }
        }
        Ok(0)
    }

    /// Carries out a change in a tenant that is marked. Nothing is held for anybody afterwards.
    async fn take_step(
        &self,
        name: &Tenant,
        id: LocalityId,
        change: MutationKind,
    ) -> Result<MutationReport, Error> {
        let now = self.now();
        let policies = Arc::new(Policies { holds: Default::default(), ..Policies::default() });
        let mutation = Mutation::new(name.clone(), id, now.time, change);
        let mutation =
            Mutation { in_doubt: now.in_doubt, policies, limits: self.limits, ..mutation };
        Ok(self.store.mutate(mutation).await?.report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_is_waited_for() {
        let (deletions, tenant) = (Deletions::default(), Tenant::DEFAULT);
        let next = || deletions.lock().get(&tenant).map(|marked| marked.next).unwrap();
        deletions.add(tenant.clone(), Timestamp::from_millis(1));
        let first = next();
        deletions.add(tenant.clone(), Timestamp::from_millis(1));
        assert_eq!(next(), first);
        assert!(first > Instant::now() && deletions.due().is_empty());
        deletions.lock().get_mut(&tenant).unwrap().next = Instant::now();
        assert_eq!(deletions.due(), std::slice::from_ref(&tenant));
        deletions.add(tenant.clone(), Timestamp::from_millis(2));
        assert!(deletions.due().is_empty(), "a mark that was made later");
        deletions.remove(&tenant);
        assert!(!deletions.has(&tenant, Timestamp::from_millis(2)));
    }
}
