//! Deleting tenants: a call marks the tenant, and the servers remove it with all its contents.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use locality_uuid::LocalityId;

use crate::error::Error;
use crate::model::policies::Policies;
use crate::model::record::Record;
use crate::model::tenant::Tenant;
use crate::model::tenant_record::{DeletionStep, TenantRecord};
use crate::mutation::merge_links::MAX_STEPS;
use crate::mutation::read_set::MutationReport;
use crate::mutation::{MutationKind, TenantChange, UserChange};
use crate::service::Directory;
use crate::service::context::MutationCall;
use crate::service::log_pause::LogPause;
use crate::service::mutate::mutation_log::MutationLog;
use crate::tenant_cache::KnownTenant;
use crate::tenant_queue::TenantJob;

/// Users or keys in one step.
const STEP_ITEMS: usize = 100;
/// Users that are purged concurrently.
const CONCURRENT_PURGES: usize = 16;

/// The pauses between two lines of the log about users that stay.
static UNREADABLE_LOG: LogPause = LogPause::new(Duration::from_secs(1));
static UNPURGED_LOG: LogPause = LogPause::new(Duration::from_secs(1));

/// The outcome of one step.
enum Step {
    More,
    Done,
    /// The mark is too young.
    Wait,
}

/// A round over the users of a tenant.
#[derive(Default)]
struct Round {
    /// The last user that was read.
    after: Option<LocalityId>,
    users: usize,
    purged: usize,
}

impl Round {
    /// Ends a round.
    ///
    /// # Errors
    /// [`Error::Internal`] if none of the users that are left can be purged.
    fn end(self) -> Result<(), Error> {
        let Self { users, purged, .. } = self;
        match purged {
            0 => Err(Error::Internal(
                format!(
                    "{users} of the tenant's users cannot be purged: run `polynym store verify`"
                )
                .into(),
            )),
            _ => Ok(()),
        }
    }
}

impl Directory {
    /// Marks a tenant for deletion, with its users or only if it has none. Returns the tenant; none
    /// if the call is repeated after the tenant was removed.
    ///
    /// # Errors
    /// [`Error::TenantNotFound`], [`Error::TenantNotEmpty`], [`Error::EtagMismatch`], and those of
    /// [`crate::stores::Mutations::mutate`].
    pub async fn delete_tenant(
        &self,
        call: MutationCall<'_>,
        with_users: bool,
    ) -> Result<Option<TenantRecord>, Error> {
        let (name, dry_run) = (call.context.tenant.clone(), call.dry_run);
        let kind = MutationKind::Tenant(TenantChange::Delete(DeletionStep::Begin { with_users }));
        let mutation = self.mutation(call.clone(), kind, KnownTenant::default())?;
        let began = Instant::now();
        let log = MutationLog::new(&call, None);
        let outcome = self.backend.mutations.mutate(mutation).await;
        log.write(&outcome);
        let MutationReport::Tenant(tenant) = outcome?.report else {
            return Ok(None);
        };

        if let (Some(deletion), false) = (tenant.deletion, dry_run) {
            self.tenants.learn_change(&name, Some(KnownTenant::from(&*tenant)), began);
            self.jobs.add(TenantJob::Deletion, &name, deletion.time);
        }
        Ok(Some(*tenant))
    }

    /// Deletes a marked tenant. Safe on several servers: each step is a transaction, and a repeated
    /// step has no effect.
    pub(crate) async fn delete_marked_tenant(&self, name: &Tenant) -> Result<(), Error> {
        let mut round = Round::default();
        loop {
            match self.deletion_step(name, &mut round).await? {
                Step::More => {}
                Step::Wait => return Ok(()),
                Step::Done => {
                    self.jobs.remove(TenantJob::Deletion, name);
                    return Ok(());
                }
            }
        }
    }

    /// Takes the next step: first users, then holds, usage, jobs, and the tenant. The mark
    /// stays until the last step, so that another server can continue.
    async fn deletion_step(&self, name: &Tenant, round: &mut Round) -> Result<Step, Error> {
        let Some(tenant) = self.backend.tenants.tenant(name).await? else { return Ok(Step::Done) };
        let Some(deletion) = tenant.deletion else { return Ok(Step::Done) };

        if self.jobs.add(TenantJob::Deletion, name, deletion.time) {
            return Ok(Step::Wait);
        }

        let part = self.backend.search.scan(name, round.after, STEP_ITEMS).await?;
        round.users += part.users.len();
        if !part.users.is_empty() && !deletion.with_users {
            self.finish_deletion(name, DeletionStep::Cancel).await?;
            tracing::warn!(tenant = %name, "gave up the deletion of a tenant: it has users now");
            return Ok(Step::Done);
        }

        if round.users > 0 {
            for user in part.unreadable().filter(|_| UNREADABLE_LOG.is_over()) {
                tracing::error!(tenant = %name, %user, "a user cannot be read, nor purged");
            }
            round.purged += self.purge_all(name, part.readable()).await?;
            round.after = part.next;
            if round.after.is_none() {
                std::mem::take(round).end()?;
            }
            return Ok(Step::More);
        }

        let keys = self.backend.tenants.keys(name, STEP_ITEMS).await?;
        if !keys.is_empty() {
            self.advance(name, DeletionStep::RemoveClaims(keys)).await?;
            return Ok(Step::More);
        }

        if self.backend.usage.remove_usage(name).await? {
            return Ok(Step::More);
        }

        self.backend.bulk_changes.remove_bulk_changes(name).await?;
        self.backend.deliveries.remove_deliveries(name).await?;
        self.finish_deletion(name, DeletionStep::Finish).await?;
        tracing::info!(tenant = %name, "deleted a tenant");
        Ok(Step::Done)
    }

    async fn finish_deletion(&self, name: &Tenant, step: DeletionStep) -> Result<(), Error> {
        let began = Instant::now();
        self.advance(name, step).await?;
        let tenant = self.backend.tenants.tenant(name).await?;
        self.tenants.learn_change(name, tenant.as_ref().map(KnownTenant::from), began);
        Ok(())
    }

    async fn advance(&self, name: &Tenant, step: DeletionStep) -> Result<(), Error> {
        self.mutate_marked(name, MutationKind::Tenant(TenantChange::Delete(step))).await.map(drop)
    }

    /// Purges users. Returns the number of purged users: those that cannot be read stay.
    async fn purge_all<'r>(
        &self,
        name: &Tenant,
        users: impl Iterator<Item = &'r Record>,
    ) -> Result<usize, Error> {
        let purge = async |record| (Record::id(record), self.purge_whole(name, record).await);
        let purges: Vec<_> = users.map(purge).collect();
        let mut outcomes = stream::iter(purges).buffer_unordered(CONCURRENT_PURGES);
        let mut purged = 0;
        while let Some((user, outcome)) = outcomes.next().await {
            match outcome {
                Ok(users) => purged += users,
                Err(error @ Error::Internal(_)) => {
                    if UNPURGED_LOG.is_over() {
                        let error = error.with_causes();
                        tracing::error!(%user, error, "a user cannot be purged");
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(purged)
    }

    /// Purges a user, or the user that it was merged into. Returns the number of purged users.
    async fn purge_whole(&self, name: &Tenant, record: &Record) -> Result<usize, Error> {
        let (mut id, mut change) = (record.id(), UserChange::Purge);
        for _ in 0..=MAX_STEPS {
            match self.mutate_marked(name, MutationKind::User(id, change.clone())).await {
                Ok(MutationReport::Purged(users)) => return Ok(users.len()),
                // A user whose purge time has passed is absent for every change but its expiry.
                Err(Error::UserNotFound) if change == UserChange::Purge => {
                    change = UserChange::Expire;
                }
                Ok(_) | Err(Error::UserNotFound) => return Ok(0),
                Err(Error::UserMerged { into, .. }) => id = into,
                Err(error) => return Err(error),
            }
        }

        Ok(0)
    }

    /// Executes a mutation in a marked tenant, without holds.
    async fn mutate_marked(
        &self,
        name: &Tenant,
        kind: MutationKind,
    ) -> Result<MutationReport, Error> {
        let known = self.tenants.get(&self.backend.tenants, name).await?.unwrap_or_default();
        let history_retention = known.policies.history_retention;
        let holds = Default::default();
        let policies = Arc::new(Policies { holds, history_retention, ..Policies::default() });
        let mutation = self.own_mutation(name, KnownTenant { policies, ..known }, kind);
        Ok(self.mutate_despite_damage(mutation).await?.report)
    }
}
