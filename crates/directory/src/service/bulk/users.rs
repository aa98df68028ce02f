//! The changes of single users by bulk changes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use locality_uuid::LocalityId;
use tokio::time::sleep;
use xxhash_rust::xxh3::Xxh3;

use super::calls::with_version;
use super::run::{BulkRunner, METHOD, is_retryable};
use crate::error::Error;
use crate::model::bulk::change::{BulkAction, BulkChange};
use crate::model::bulk::progress::{BulkEffect, BulkResults};
use crate::model::event::Origin;
use crate::mutation::read_set::{MutationReport, Outcome};
use crate::mutation::{IdempotencyKey, Mutation, MutationKind, UserChange};
use crate::search::Filter;
use crate::service::mutate::request_hash::request_hash;
use crate::service::tenant_cache::KnownTenant;
use crate::update::Update;

/// The time for which users are retried that others change, or that the store cannot change now.
const RETRY_TIMEOUT: Duration = Duration::from_secs(3);
/// The delay before a retry.
const RETRY_DELAY: Duration = Duration::from_millis(100);

impl BulkRunner<'_> {
    /// Changes the users of the present batch that match the filter. Users that were changed
    /// before are not changed again.
    ///
    /// # Errors
    /// The batch must be repeated.
    pub(super) async fn change_batch(
        &self,
        change: &BulkChange,
        filter: &Arc<Filter>,
    ) -> Result<BulkResults, Error> {
        let (mut results, mut pending) = (BulkResults::default(), change.batch.users.clone());
        let began = Instant::now();
        while !pending.is_empty() {
            let known = self.tenant(change).await?;
            let mutations = pending.iter().map(|id| self.mutation(change, *id, filter, &known));
            let outcomes = self.directory.backend.mutations.mutate_all(mutations.collect()).await;
            let (mut retried, mut cause) = (Vec::new(), None);
            for (id, outcome) in pending.into_iter().zip(outcomes) {
                match outcome {
                    Ok(outcome) => results.add(effect(&outcome)),
                    Err(Error::UserNotFound) => results.add(BulkEffect::Unmatched),
                    Err(error @ Error::TenantNotFound) => return Err(error),
                    Err(error) if is_retryable(&error) => {
                        retried.push(id);
                        cause = Some(error);
                    }
                    Err(error) => results.fail(id, self.host.error_reason(&error)),
                }
            }
            pending = retried;
            if let Some(error) = cause {
                if began.elapsed() >= RETRY_TIMEOUT {
                    return Err(error);
                }
                sleep(RETRY_DELAY).await;
            }
        }
        Ok(results)
    }

    async fn tenant(&self, change: &BulkChange) -> Result<KnownTenant, Error> {
        let known = self.directory.tenants.get(&*self.directory.backend.tenants, &change.tenant);
        known.await?.filter(|tenant| !tenant.is_deleted).ok_or(Error::TenantNotFound)
    }

    fn mutation(
        &self,
        change: &BulkChange,
        id: LocalityId,
        filter: &Arc<Filter>,
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
            filter: Some(filter.clone()),
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
        BulkAction::Attributes(edits) => {
            UserChange::Update(Update { edits: edits.clone(), ..Update::default() })
        }
    }
}

/// The id of the request for a user: the same on every server (version 8, RFC 9562).
fn request_id(change: &BulkChange, id: LocalityId) -> LocalityId {
    let mut hash = Xxh3::new();
    for part in [change.tenant.as_str().as_bytes(), change.id.as_bytes(), id.as_bytes()] {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    LocalityId::from(with_version(hash.digest128().to_be_bytes(), 8))
}
