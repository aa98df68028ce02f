//! Bulk changes that undo an operation: how they find its users, and their right to undo another
//! bulk change.

use std::collections::HashSet;
use std::time::Duration;

use locality_uuid::LocalityId;

use super::turn::{BulkRunner, lost_list, next_row};
use crate::error::Error;
use crate::model::bulk::change::{BulkAction, BulkChange, BulkList};
use crate::model::bulk::progress::BulkBatch;
use crate::mutation::bulk::{BulkStep, FoundUsers};
use crate::mutation::operation_events::Reversal;
use crate::mutation::read_set::MutationReport;
use crate::mutation::{Mutation, MutationKind};
use crate::service::purpose::began_after;
use crate::service::transfer::undo::operation_users::OperationUsers;
use crate::tenant_cache::KnownTenant;

/// The interval at which a search asks if its bulk change was stopped.
const STOP_INTERVAL: Duration = Duration::from_secs(2);

/// The operation that a bulk change undoes.
pub(super) struct Undone {
    operation_id: String,
    /// The users that the operation may have begun to change, if it is a bulk change.
    batch: Option<HashSet<LocalityId>>,
    /// Those of them for whom it was undone.
    undone: Vec<LocalityId>,
    dry_run: bool,
}

impl Undone {
    /// Notes that it was undone for a user.
    pub fn note(&mut self, id: LocalityId) {
        if self.batch.as_ref().is_some_and(|batch| batch.contains(&id)) {
            self.undone.push(id);
        }
    }

    /// The undoing for a user.
    pub fn reversal(&self, id: LocalityId) -> Reversal {
        let batch = self.batch.as_ref().filter(|_| !self.dry_run);
        Reversal {
            operation_id: self.operation_id.clone(),
            since: began_after(&self.operation_id),
            is_bulk: batch.is_some(),
            in_batch: batch.is_some_and(|batch| batch.contains(&id)),
        }
    }
}

impl BulkRunner {
    /// Takes the right to undo an operation that is a bulk change, or renews it. A dry run only
    /// checks it. Returns the operation; none if the bulk change undoes none.
    ///
    /// # Errors
    /// [`Error::Bulk`] if the operation is a bulk change that runs.
    pub(super) async fn begin_undoing(&self, change: &BulkChange) -> Result<Option<Undone>, Error> {
        let BulkAction::Undo(operation_id) = &change.action else { return Ok(None) };
        let changes = &self.directory.backend.bulk_changes;
        let bulk = changes.bulk_change(&change.tenant, operation_id).await?;
        let batch = match bulk.filter(|bulk| !bulk.dry_run) {
            Some(_) => {
                let bulk = self.undo_step(change, operation_id, BulkStep::Undo(Vec::new()));
                bulk.await?.map(|bulk| bulk.batch.users.into_iter().collect())
            }
            None => None,
        };
        let (operation_id, dry_run) = (operation_id.clone(), change.dry_run);
        Ok(Some(Undone { operation_id, batch, undone: Vec::new(), dry_run }))
    }

    /// The users after the present batch of those who are undone. Looks for them if none are known.
    pub(super) async fn next_undone(
        &self,
        change: &BulkChange,
        undone: &Undone,
    ) -> Result<(BulkBatch, Option<FoundUsers>), Error> {
        let batch = &change.batch;
        let is_known = match change.list {
            Some(list) => batch.is_last || next_row(batch)? < list.batches(),
            None => batch.is_last,
        };
        if is_known {
            return Ok((self.next_batch(change, None).await?, None));
        }
        let FoundUsers { users, is_partial } = self.find_undone(change, undone).await?;
        let first = users.chunks(BulkList::BATCH_USERS).next().unwrap_or_default().to_vec();
        let is_last = first.len() == users.len() && !is_partial;
        let next = BulkBatch { users: first, cursor: 1_u32.to_be_bytes().to_vec(), is_last };
        let found = Some(FoundUsers { users, is_partial });
        Ok((next, found.filter(|found| !found.users.is_empty())))
    }

    /// Finds the next users of an operation, after those of the list.
    async fn find_undone(&self, change: &BulkChange, undone: &Undone) -> Result<FoundUsers, Error> {
        let Undone { operation_id, batch, .. } = undone;
        let directory = &*self.directory;
        let batch = batch.iter().flatten().copied().collect();
        let (since, max_kept) = (began_after(operation_id), directory.limits.undone_users);
        let users = OperationUsers::new(&change.tenant, operation_id, since, batch, max_kept);
        let mut users = users.after(self.last_found(change).await?);
        let mut checked = directory.clock.instant();
        loop {
            let found = users.next(&*directory.backend.histories, usize::MAX).await?;
            if users.is_at_end() || !found.is_empty() {
                let is_partial = !users.is_at_end();
                return Ok(FoundUsers { users: found.into(), is_partial });
            }
            if directory.clock.instant() - checked >= STOP_INTERVAL {
                checked = directory.clock.instant();
                let changes = &directory.backend.bulk_changes;
                let present = changes.bulk_change(&change.tenant, &change.id).await?;
                if !present.is_some_and(|present| present.is_running()) {
                    // It is stopped, so that nothing is recorded of this.
                    return Ok(FoundUsers { users: [].into(), is_partial: true });
                }
            }
        }
    }

    /// The last user of the list; none before there is a list.
    async fn last_found(&self, change: &BulkChange) -> Result<Option<LocalityId>, Error> {
        let Some(row) = change.list.map(BulkList::batches).and_then(|rows| rows.checked_sub(1))
        else {
            return Ok(None);
        };
        let changes = &self.directory.backend.bulk_changes;
        let users = changes.listed_users(&change.tenant, &change.id, row as u32).await?;
        users.last().copied().map(Some).ok_or_else(lost_list)
    }

    /// Records which users the undone bulk change does not change again. Gives the right to undo it
    /// up at the end.
    pub(super) async fn note_undone(
        &self,
        change: &BulkChange,
        Undone { operation_id, batch, undone, .. }: Undone,
        is_end: bool,
    ) -> Result<(), Error> {
        let step = match is_end {
            _ if batch.is_none() || change.dry_run => return Ok(()),
            true => BulkStep::EndUndo(undone),
            false if undone.is_empty() => return Ok(()),
            false => BulkStep::Undo(undone),
        };
        self.undo_step(change, &operation_id, step).await.map(drop)
    }

    /// Takes a step of the undone bulk change. Returns it, unless the step has no effect.
    async fn undo_step(
        &self,
        change: &BulkChange,
        operation_id: &str,
        step: BulkStep,
    ) -> Result<Option<BulkChange>, Error> {
        let kind = MutationKind::Bulk(operation_id.to_owned(), step);
        let step = self.directory.own_mutation(&change.tenant, KnownTenant::default(), kind);
        let step = Mutation { dry_run: change.dry_run, ..step };
        match self.directory.backend.mutations.mutate(step).await?.report {
            MutationReport::BulkChange(bulk) => Ok(Some(*bulk)),
            _ => Ok(None),
        }
    }
}
