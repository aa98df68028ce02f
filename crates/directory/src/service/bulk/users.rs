//! The changes of single users by bulk changes.

use std::sync::Arc;
use std::time::Duration;

use locality_uuid::LocalityId;
use xxhash_rust::xxh3::Xxh3;

use super::calls::with_version;
use super::turn::{BulkRunner, METHOD, is_retryable};
use super::undoing::Undone;
use crate::error::{Error, NotUndone};
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

/// A batch of a bulk change.
struct Batch<'b> {
    change: &'b BulkChange,
    /// The filter of its users; none if it has a list.
    filter: Option<&'b Arc<Filter>>,
    /// The operation that is undone, if it undoes one.
    undone: Option<&'b mut Undone>,
    results: BulkResults,
}

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
        undone: Option<&mut Undone>,
    ) -> Result<BulkResults, Error> {
        let mut batch = Batch { change, filter, undone, results: BulkResults::default() };
        let mut pending = change.batch.users.clone();
        let clock = &self.directory.clock;
        let began = clock.instant();
        while !pending.is_empty() {
            let mut refused = self.change_users(&mut batch, pending).await?;
            if clock.instant() - began >= RETRY_TIMEOUT {
                if !self.has_waited(change, refused.len())
                    && let Some((_, error)) = refused.pop()
                {
                    return Err(error);
                }
                for (id, error) in refused.drain(..) {
                    batch.results.fail(id, error.reason());
                }
            } else if !refused.is_empty() {
                clock.sleep(RETRY_DELAY).await;
            }
            pending = refused.into_iter().map(|(id, _)| id).collect();
        }
        Ok(batch.results)
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
        batch: &mut Batch<'_>,
        users: Vec<LocalityId>,
    ) -> Result<Vec<(LocalityId, Error)>, Error> {
        let known = self.tenant(batch.change).await?;
        let rules = match &batch.undone {
            Some(_) => Some(self.directory.rules_to_change().await?),
            None => None,
        };
        let mutation = |id: &LocalityId| {
            let mutation = self.mutation(batch, *id, &known);
            Mutation { rules: rules.unwrap_or(mutation.rules), ..mutation }
        };
        let mutations = users.iter().map(mutation).collect();
        let outcomes = self.directory.backend.mutations.mutate_all(mutations).await;
        let mut refused = Vec::new();
        for (id, outcome) in users.into_iter().zip(outcomes) {
            match outcome {
                Ok(outcome) => batch.add(id, effect(&outcome)),
                Err(Error::UserNotFound) if batch.filter.is_some() => {
                    batch.add(id, BulkEffect::Unmatched);
                }
                // It was removed, maybe after the operation was undone for it.
                Err(Error::UserNotFound) if batch.undone.is_some() => {
                    batch.add(id, BulkEffect::Skipped);
                }
                Err(error @ (Error::TenantNotFound | Error::Bulk(_))) => return Err(error),
                Err(error) if is_retryable(&error) => refused.push((id, error)),
                Err(error) => batch.fail(id, &error),
            }
        }
        Ok(refused)
    }

    async fn tenant(&self, change: &BulkChange) -> Result<KnownTenant, Error> {
        let known = self.directory.tenants.get(&self.directory.backend.tenants, &change.tenant);
        known.await?.filter(|tenant| !tenant.is_deleted).ok_or(Error::TenantNotFound)
    }

    fn mutation(&self, batch: &Batch<'_>, id: LocalityId, known: &KnownTenant) -> Mutation {
        let change = batch.change;
        let reversal = batch.undone.as_ref().map(|undone| undone.reversal(id));
        let kind = match reversal {
            Some(reversal) => MutationKind::User(id, UserChange::Revert(reversal)),
            None => MutationKind::User(id, user_change(&change.action)),
        };
        let request_id = request_id(change, Some(id));
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
                filter: batch.filter.cloned(),
            }),
            origin: origin(change, request_id),
            ..self.directory.own_mutation(&change.tenant, known.clone(), kind)
        }
    }
}

impl Batch<'_> {
    fn add(&mut self, id: LocalityId, effect: BulkEffect) {
        self.results.add(effect);
        if let Some(undone) = &mut self.undone
            && effect == BulkEffect::Changed
        {
            undone.note(id);
        }
    }

    fn fail(&mut self, id: LocalityId, error: &Error) {
        if let Error::NotUndone(NotUndone::ChangedSince(blockers)) = error {
            self.results.block(blockers);
        }
        self.results.fail(id, error.reason());
    }
}

/// The effect on a user. A repeated request has changed it before.
fn effect(outcome: &Outcome) -> BulkEffect {
    match outcome.report {
        MutationReport::BulkUser(effect) => effect,
        _ => BulkEffect::Changed,
    }
}

/// The origin of an event. Those of an undoing have one request id: users who are undone together
/// are recognised by it.
fn origin(change: &BulkChange, request_id: LocalityId) -> Origin {
    let (method, request_id, operation_id) = match &change.action {
        BulkAction::Undo(undone) => (Origin::UNDO, self::request_id(change, None), undone),
        _ => (METHOD, request_id, &change.id),
    };
    Origin {
        caller: change.caller.clone(),
        method: method.to_owned(),
        request_id: Some(request_id),
        reason: change.reason.clone(),
        operation_id: operation_id.clone(),
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
        // An undoing has a change for each user.
        BulkAction::Undo(_) => UserChange::Reindex,
    }
}

/// The id of the request for a user, or for all: the same on every server (version 8, RFC 9562).
/// Another bulk change with the same id has others.
fn request_id(change: &BulkChange, id: Option<LocalityId>) -> LocalityId {
    let created = change.create_time.as_millis().to_le_bytes();
    let (tenant, bulk) = (change.tenant.as_str().as_bytes(), change.id.as_bytes());
    let mut hash = Xxh3::new();
    let user = id.as_ref().map_or(&[][..], |id| id.as_bytes());
    for part in [tenant, bulk, &created, user] {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    LocalityId::from(with_version(hash.digest128().to_be_bytes(), 8))
}
