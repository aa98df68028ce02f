//! Undoes an operation, such as an import: its users, or some, become what they were before, unless
//! somebody changed them since.

pub mod operation_users;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use locality_uuid::LocalityId;

use crate::error::{Error, Invalid};
use crate::limits::Limits;
use crate::model::bulk::change::BulkChange;
use crate::model::event::Origin;
use crate::model::tenant::Tenant;
use crate::mutation::bulk::BulkStep;
use crate::mutation::operation_events::Reversal;
use crate::mutation::read_set::MutationReport;
use crate::mutation::{Mutation, MutationKind, UserChange};
use crate::service::Directory;
use crate::service::context::{MutationCall, RequestContext};
use crate::service::parse::parse_user_id;
use crate::service::purpose::{Purpose, began_after};
use crate::service::scan_pace::Pace;
use crate::tenant_cache::KnownTenant;
use crate::timestamp::Timestamp;
use operation_users::OperationUsers;
use polynym_identifier::Rules;

/// Users in one step.
const STEP_USERS: usize = 256;
/// The most users of a request.
const MAX_LISTED: usize = 1_000;
/// The interval at which the undoing of a bulk change renews its right.
const RENEW_INTERVAL: Duration = Duration::from_secs(2);

/// A step of the undoing.
#[derive(Debug, Default)]
pub struct UndoStep {
    /// Users that were looked at; none in a step that reads the events of the tenant.
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
    /// The bulk change that is undone, if it is one.
    bulk: Option<UndoneBulk>,
    users: UndoneUsers,
    pace: Pace,
}

/// The users for whom an operation is undone.
enum UndoneUsers {
    /// Those of a request.
    Listed(Vec<LocalityId>),
    /// All of the operation.
    All(Box<OperationUsers>),
}

impl UndoneUsers {
    /// All of an operation, and those whom the bulk change may have begun to change.
    fn all(
        call: &MutationCall<'_>,
        operation_id: &str,
        bulk: Option<&UndoneBulk>,
        limits: Limits,
    ) -> Self {
        let batch = bulk.iter().flat_map(|bulk| bulk.batch.iter().copied()).collect();
        let (since, max_kept) = (began_after(operation_id), limits.undone_users);
        let tenant = &call.context.tenant;
        let users = OperationUsers::new(tenant, operation_id, since, batch, max_kept);
        Self::All(Box::new(users))
    }

    fn are_at_end(&self) -> bool {
        match self {
            Self::Listed(users) => users.is_empty(),
            Self::All(users) => users.is_at_end(),
        }
    }
}

/// A bulk change that is undone.
struct UndoneBulk {
    /// The users that it may have begun to change.
    batch: HashSet<LocalityId>,
    /// Those of them that were undone.
    undone: Vec<LocalityId>,
    /// The time when the right to undo it was last renewed.
    renewed: Instant,
}

impl Directory {
    /// Begins to undo an operation for these users, or for all if there are none. Nothing is read
    /// until [`Undo::next`].
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no id, or the tenant keeps no history; [`Error::Bulk`] if it
    /// is a bulk change that runs; [`Error::TenantNotFound`], [`Error::Unavailable`].
    pub async fn begin_undo(
        self: &Arc<Self>,
        call: &MutationCall<'_>,
        operation_id: &str,
        user_ids: &[String],
    ) -> Result<Undo, Error> {
        let listed = listed(user_ids)?;
        let known = self.tenant_to_change(call).await?;
        check_operation("operation_id", operation_id, &known)?;
        let bulk = self.backend.bulk_changes.bulk_change(&call.context.tenant, operation_id);
        // A dry run has changed nobody.
        let bulk = match bulk.await?.filter(|bulk| !bulk.dry_run) {
            Some(_) => {
                let step = BulkStep::Undo(Vec::new());
                Some(self.bulk_call(call.clone(), operation_id, step).await?)
            }
            None => None,
        };
        let undone = |bulk: BulkChange| UndoneBulk {
            batch: bulk.batch.users.into_iter().collect(),
            undone: Vec::new(),
            renewed: self.clock.instant(),
        };
        // A dry run takes no right.
        let bulk = bulk.filter(|_| !call.dry_run).map(undone);
        let all = || UndoneUsers::all(call, operation_id, bulk.as_ref(), self.limits);
        let users = listed.map_or_else(all, UndoneUsers::Listed);
        Ok(Undo {
            directory: self.clone(),
            tenant: call.context.tenant.clone(),
            known,
            caller: call.context.caller.to_owned(),
            reason: call.context.purpose.reason.to_owned(),
            dry_run: call.dry_run,
            operation_id: operation_id.to_owned(),
            since: began_after(operation_id),
            bulk,
            users,
            pace: Pace::default(),
        })
    }
}

impl Undo {
    /// Undoes the operation for the next users; none at the end.
    ///
    /// # Errors
    /// Those of the store; [`Error::Bulk`] if the bulk change was resumed meanwhile.
    pub async fn next(&mut self) -> Result<Option<UndoStep>, Error> {
        self.pace.rest().await;
        self.renew().await?;
        if self.users.are_at_end() {
            self.end().await?;
            return Ok(None);
        }
        let candidates = self.candidates().await?;
        if candidates.is_empty() {
            return Ok(Some(UndoStep::default()));
        }
        let mut step = UndoStep { users: candidates.len() as u64, ..UndoStep::default() };
        let rules = self.directory.rules_to_change().await?;
        let mutations =
            candidates.iter().map(|id| self.mutation(*id, rules)).collect::<Result<_, _>>()?;
        let outcomes = self.directory.backend.mutations.mutate_all(mutations).await;
        for (id, outcome) in candidates.into_iter().zip(outcomes) {
            match outcome.map(|outcome| outcome.report) {
                Ok(MutationReport::Reverted(users)) => {
                    step.reverted += users;
                    self.note_undone(id);
                }
                Ok(_) | Err(Error::UserNotFound) => {}
                Err(error) if ends_undoing(&error) => return Err(error),
                Err(error) => step.kept.push((id, error)),
            }
        }
        Ok(Some(step))
    }

    /// The next users whom the operation may have changed.
    async fn candidates(&mut self) -> Result<Vec<LocalityId>, Error> {
        match &mut self.users {
            UndoneUsers::Listed(users) => Ok(users.drain(..users.len().min(STEP_USERS)).collect()),
            UndoneUsers::All(users) => {
                users.next(&*self.directory.backend.histories, STEP_USERS).await
            }
        }
    }

    /// Renews the right to undo a bulk change from time to time.
    async fn renew(&mut self) -> Result<(), Error> {
        let now = self.directory.clock.instant();
        match &mut self.bulk {
            Some(bulk) if now.duration_since(bulk.renewed) >= RENEW_INTERVAL => bulk.renewed = now,
            _ => return Ok(()),
        }
        self.bulk_step(BulkStep::Undo(Vec::new())).await
    }

    /// Gives the right to undo a bulk change up.
    async fn end(&self) -> Result<(), Error> {
        match &self.bulk {
            Some(bulk) => self.bulk_step(BulkStep::EndUndo(bulk.undone.clone())).await,
            None => Ok(()),
        }
    }

    /// Notes that a user was undone, if the bulk change may meet it again.
    fn note_undone(&mut self, id: LocalityId) {
        let bulk = self.bulk.as_mut().filter(|bulk| bulk.batch.contains(&id));
        bulk.into_iter().for_each(|bulk| bulk.undone.push(id));
    }

    async fn bulk_step(&self, step: BulkStep) -> Result<(), Error> {
        let kind = MutationKind::Bulk(self.operation_id.clone(), step);
        let mutation = self.directory.own_mutation(&self.tenant, KnownTenant::default(), kind);
        self.directory.backend.mutations.mutate(mutation).await.map(drop)
    }

    fn mutation(&self, id: LocalityId, rules: Rules) -> Result<Mutation, Error> {
        let (reason, operation_id) = (&*self.reason, &*self.operation_id);
        let purpose = Purpose { reason, operation_id };
        let context = self.directory.context(self.tenant.clone(), &self.caller, Origin::UNDO, "");
        let call =
            MutationCall { dry_run: self.dry_run, ..RequestContext { purpose, ..context }.into() };
        let reversal = Reversal {
            operation_id: self.operation_id.clone(),
            since: self.since,
            is_bulk: self.bulk.is_some(),
            in_batch: self.bulk.as_ref().is_some_and(|bulk| bulk.batch.contains(&id)),
        };
        let kind = MutationKind::User(id, UserChange::Revert(reversal));
        Ok(Mutation { rules, ..self.directory.mutation(call, kind, self.known.clone())? })
    }
}

/// Checks that an operation of a tenant can be undone.
///
/// # Errors
/// [`Error::Invalid`] if there is no id, or the tenant keeps no history.
pub fn check_operation(field: &str, operation_id: &str, known: &KnownTenant) -> Result<(), Error> {
    let fault = match operation_id {
        "" => "is the id of an operation, such as an import",
        _ if known.policies.history_retention.is_zero() => {
            "cannot be undone: the tenant keeps no history"
        }
        _ => return Ok(()),
    };
    Err(Error::invalid(Invalid::Field, field, fault))
}

/// The users of a request, each once; none if it names none.
fn listed(user_ids: &[String]) -> Result<Option<Vec<LocalityId>>, Error> {
    if user_ids.len() > MAX_LISTED {
        return Err(Error::invalid(Invalid::Field, "user_ids", "at most 1,000"));
    }
    let ids = user_ids.iter().map(|id| parse_user_id("user_ids", id));
    let ids = ids.collect::<Result<BTreeSet<_>, _>>()?;
    Ok(Some(Vec::from_iter(ids)).filter(|ids| !ids.is_empty()))
}

/// Whether an error concerns more than one user.
const fn ends_undoing(error: &Error) -> bool {
    match error {
        Error::Internal(_) => false,
        Error::Bulk(_) => true,
        other => other.is_of_store(),
    }
}
