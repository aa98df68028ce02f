//! The changes of single users by bulk changes.

use std::sync::Arc;
use std::time::Duration;

use locality_uuid::LocalityId;
use xxhash_rust::xxh3::Xxh3;

use super::calls::with_version;
use super::turn::{BulkRunner, METHOD, is_retryable};
use crate::error::Error;
use crate::model::bulk::change::{BulkAction, BulkChange, BulkWait};
use crate::model::bulk::progress::{BulkEffect, BulkResults};
use crate::model::event::Origin;
use crate::mutation::bulk::BulkPart;
use crate::mutation::read_set::{MutationReport, Outcome};
use crate::mutation::{IdempotencyKey, Mutation, MutationKind, UserChange};
use crate::search::Filter;
use crate::service::mutate::request_hash::request_hash;
use crate::tenant_cache::KnownTenant;
use crate::update_mask::Update;

/// The time for which users are retried that others change, or that the store cannot change now.
const RETRY_TIMEOUT: Duration = Duration::from_secs(3);
/// The delay before a retry.
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// How long users wait that the store does not accept, until they count as failed: some of a batch,
/// and a whole batch, for which the store may be to blame.
const MAX_WAIT: Duration = Duration::from_secs(5 * 60);
const MAX_WAIT_OF_ALL: Duration = Duration::from_secs(60 * 60);

impl BulkRunner {
    /// Changes the users of the present batch that are listed, or match the filter. Users that were
    /// changed before are not changed again.
    ///
    /// # Errors
    /// The batch must be repeated.
    pub(super) async fn change_batch(
        &self,
        change: &BulkChange,
        filter: Option<&Arc<Filter>>,
    ) -> Result<BulkResults, Error> {
        let (mut results, mut pending) = (BulkResults::default(), change.batch.users.clone());
        let clock = &self.directory.clock;
        let began = clock.instant();
        while !pending.is_empty() {
            let mut refused = self.change_users(change, filter, pending, &mut results).await?;
            if clock.instant() - began >= RETRY_TIMEOUT {
                if !self.has_waited(change, refused.len())
                    && let Some((_, error)) = refused.pop()
                {
                    return Err(error);
                }
                for (id, error) in refused.drain(..) {
                    results.fail(id, error.reason());
                }
            } else if !refused.is_empty() {
                clock.sleep(RETRY_DELAY).await;
            }
            pending = refused.into_iter().map(|(id, _)| id).collect();
        }
        Ok(results)
    }

    /// Whether so many users of the present batch have waited long enough.
    fn has_waited(&self, change: &BulkChange, refused: usize) -> bool {
        let is_all = refused == change.batch.users.len();
        let max_wait = if is_all { MAX_WAIT_OF_ALL } else { MAX_WAIT };
        let is_over = |wait: &BulkWait| self.directory.now().is_past(wait.since.plus(max_wait));
        change.wait.as_ref().is_some_and(is_over)
    }

    /// Changes users, and adds their results. Returns those that the store did not accept.
    async fn change_users(
        &self,
        change: &BulkChange,
        filter: Option<&Arc<Filter>>,
        users: Vec<LocalityId>,
        results: &mut BulkResults,
    ) -> Result<Vec<(LocalityId, Error)>, Error> {
        let known = self.tenant(change).await?;
        let mutations = users.iter().map(|id| self.mutation(change, *id, filter, &known));
        let outcomes = self.directory.backend.mutations.mutate_all(mutations.collect()).await;
        let mut refused = Vec::new();
        for (id, outcome) in users.into_iter().zip(outcomes) {
            match outcome {
                Ok(outcome) => results.add(effect(&outcome)),
                Err(Error::UserNotFound) if filter.is_some() => {
                    results.add(BulkEffect::Unmatched);
                }
                Err(error @ Error::TenantNotFound) => return Err(error),
                Err(error) if is_retryable(&error) => refused.push((id, error)),
                Err(error) => results.fail(id, error.reason()),
            }
        }
        Ok(refused)
    }

    async fn tenant(&self, change: &BulkChange) -> Result<KnownTenant, Error> {
        let known = self.directory.tenants.get(&self.directory.backend.tenants, &change.tenant);
        known.await?.filter(|tenant| !tenant.is_deleted).ok_or(Error::TenantNotFound)
    }

    fn mutation(
        &self,
        change: &BulkChange,
        id: LocalityId,
        filter: Option<&Arc<Filter>>,
        known: &KnownTenant,
    ) -> Mutation {
        let kind = MutationKind::User(id, user_change(&change.action));
        let request_id = request_id(change, id);
        let request = IdempotencyKey {
            // Requests of callers have a name at the end.
            key: format!("{},{METHOD},{request_id},", change.tenant),
            request_hash: request_hash("", &kind),
        };
        Mutation {
            request: Some(request).filter(|_| !change.dry_run),
            dry_run: change.dry_run,
            bulk: Some(BulkPart {
                id: change.id.clone(),
                server: self.server,
                filter: filter.cloned(),
            }),
            origin: Origin {
                caller: change.caller.clone(),
                method: METHOD.to_owned(),
                request_id: Some(request_id),
                reason: change.reason.clone(),
                operation_id: change.id.clone(),
            },
            ..self.directory.own_mutation(&change.tenant, known.clone(), kind)
        }
    }
}

/// The effect on a user. A repeated request has changed it before.
fn effect(outcome: &Outcome) -> BulkEffect {
    match outcome.report {
        MutationReport::BulkUser(effect) => effect,
        _ => BulkEffect::Changed,
    }
}

fn user_change(action: &BulkAction) -> UserChange {
    match action {
        BulkAction::Disable => UserChange::Disable,
        BulkAction::Enable => UserChange::Enable,
        BulkAction::Delete => UserChange::Delete,
        BulkAction::Undelete => UserChange::Undelete,
        BulkAction::Attributes(edits) => {
            UserChange::Update(Update { edits: edits.clone(), ..Update::default() })
        }
    }
}

/// The id of the request for a user: the same on every server (version 8, RFC 9562). Another bulk
/// change with the same id has others.
fn request_id(change: &BulkChange, id: LocalityId) -> LocalityId {
    let created = change.create_time.as_millis().to_le_bytes();
    let (tenant, bulk) = (change.tenant.as_str().as_bytes(), change.id.as_bytes());
    let mut hash = Xxh3::new();
    for part in [tenant, bulk, &created, id.as_bytes()] {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    LocalityId::from(with_version(hash.digest128().to_be_bytes(), 8))
}
