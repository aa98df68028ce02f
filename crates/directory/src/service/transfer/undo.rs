//! Undoes an operation of many changes, such as an import: all users of a tenant are read, and
//! those that it changed last become what they were before.

use std::sync::Arc;

use locality_uuid::LocalityId;

use crate::error::{Error, Invalid};
use crate::model::record::Record;
use crate::model::tenant::Tenant;
use crate::model::user::State;
use crate::mutation::bulk::BulkStep;
use crate::mutation::read_set::MutationReport;
use crate::mutation::revert::METHOD;
use crate::mutation::{Mutation, MutationKind, UserChange};
use crate::pace::Pace;
use crate::service::Directory;
use crate::service::context::{MutationCall, RequestContext};
use crate::service::purpose::{Purpose, began_after};
use crate::service::tenant_cache::KnownTenant;
use crate::timestamp::Timestamp;

/// Users in one read.
const READ_BATCH: usize = 256;

/// A step of the undoing.
#[derive(Debug, Default)]
pub struct UndoStep {
    /// Users that were read.
    pub users: u64,
    /// Users that became what they were before.
    pub reverted: u64,
    /// Users that stay as the operation left them, and why.
    pub kept: Vec<(LocalityId, Error)>,
}

/// An undoing in progress.
pub struct Undo {
    directory: Arc<Directory>,
    tenant: Tenant,
    known: KnownTenant,
    caller: String,
    reason: String,
    dry_run: bool,
    operation_id: String,
    /// The operation began after this.
    since: Option<Timestamp>,
    after: Option<LocalityId>,
    pace: Pace,
}

impl Directory {
    /// Begins to undo an operation. Nothing is read until [`Undo::next`].
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no id, or the tenant keeps no history; [`Error::Bulk`] if it
    /// is a bulk change that runs; [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn begin_undo(
        self: &Arc<Self>,
        call: &MutationCall<'_>,
        operation_id: &str,
    ) -> Result<Undo, Error> {
        let known = self.tenant_to_change(call).await?;
        let fault = match operation_id {
            "" => Some("is the id of an operation, such as an import"),
            _ if known.policies.history_retention.is_zero() => {
                Some("cannot be undone: the tenant keeps no history")
            }
            _ => None,
        };
        if let Some(fault) = fault {
            return Err(Error::invalid(Invalid::Field, "operation_id", fault));
        }
        let bulk = self.backend.bulk_changes.bulk_change(&call.context.tenant, operation_id);
        if bulk.await?.is_some() {
            self.bulk_call(call.clone(), operation_id, BulkStep::Undo).await?;
        }
        Ok(Undo {
            directory: self.clone(),
            tenant: call.context.tenant.clone(),
            known,
            caller: call.context.caller.to_owned(),
            reason: call.context.purpose.reason.to_owned(),
            dry_run: call.dry_run,
            operation_id: operation_id.to_owned(),
            since: began_after(operation_id),
            after: None,
            pace: Pace::default(),
        })
    }
}

impl Undo {
    /// Undoes the operation for the next users; none at the end.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn next(&mut self) -> Result<Option<UndoStep>, Error> {
        self.pace.rest().await;
        let search = &self.directory.backend.search;
        let records = search.scan(&self.tenant, self.after, READ_BATCH).await?;
        let Some(last) = records.last().map(Record::id) else { return Ok(None) };
        self.after = Some(last);

        let mut step = UndoStep { users: records.len() as u64, ..UndoStep::default() };
        let candidates: Vec<_> =
            records.iter().filter(|record| self.may_be_changed(record)).map(Record::id).collect();
        let mutations = candidates.iter().map(|id| self.mutation(*id)).collect::<Result<_, _>>()?;
        let outcomes = self.directory.backend.mutations.mutate_all(mutations).await;
        for (id, outcome) in candidates.into_iter().zip(outcomes) {
            match outcome.map(|outcome| outcome.report) {
                Ok(MutationReport::Reverted) => step.reverted += 1,
                Ok(_) | Err(Error::UserNotFound) => {}
                Err(error) if error.is_of_store() => return Err(error),
                Err(error) => step.kept.push((id, error)),
            }
        }
        Ok(Some(step))
    }

    /// Whether the operation may have changed a user last.
    fn may_be_changed(&self, record: &Record) -> bool {
        let is_merged = matches!(record.user.state, State::Merged { .. });
        !is_merged && self.since.is_none_or(|since| record.may_have_changed_since(since))
    }

    fn mutation(&self, id: LocalityId) -> Result<Mutation, Error> {
        let (reason, operation_id) = (&*self.reason, &*self.operation_id);
        let purpose = Purpose { reason, operation_id };
        let context = self.directory.context(self.tenant.clone(), &self.caller, METHOD, "");
        let call =
            MutationCall { dry_run: self.dry_run, ..RequestContext { purpose, ..context }.into() };
        let kind = MutationKind::User(id, UserChange::Revert(self.operation_id.clone()));
        self.directory.mutation(call, kind, self.known.clone())
    }
}
