//! The log entry of a mutation: the caller, the user and the outcome, and never an identifier.

use std::time::Instant;

use locality_uuid::LocalityId;

use crate::error::Error;
use crate::model::tenant::Tenant;
use crate::mutation::read_set::Outcome;
use crate::service::context::{MutationCall, RequestContext};
use crate::service::purpose::Purpose;

/// The target of the entries.
pub const MUTATION_LOG: &str = module_path!();

/// The log entry of a mutation in progress.
pub struct MutationLog<'a> {
    caller: &'a str,
    tenant: Tenant,
    method: &'static str,
    purpose: Purpose<'a>,
    user: Option<LocalityId>,
    /// Whether the user exists only if the mutation succeeds.
    is_creation: bool,
    started: Instant,
    /// Whether the entry is still to be written. A dry run has none.
    is_pending: bool,
}

impl<'a> MutationLog<'a> {
    /// The entry of a call that concerns this user, or no user.
    pub fn new(call: &MutationCall<'a>, user: Option<LocalityId>) -> Self {
        let mut log = Self::from_context(&call.context, user);
        log.is_pending = !call.dry_run;
        log
    }

    /// The entry of a call that changes something other than users and tenants.
    pub fn from_context(context: &RequestContext<'a>, user: Option<LocalityId>) -> Self {
        Self {
            caller: context.caller,
            tenant: context.tenant.clone(),
            method: context.method,
            purpose: context.purpose,
            user,
            is_creation: false,
            started: Instant::now(),
            is_pending: true,
        }
    }

    /// The entry of a mutation that may create the user.
    pub const fn of_creation(mut self, is_creation: bool) -> Self {
        self.is_creation = is_creation;
        self
    }

    /// Writes the entry with the outcome of a mutation.
    pub fn write(mut self, outcome: &Result<Outcome, Error>) {
        // A repeated request returns the user that it created before.
        let user = outcome.as_ref().ok().and_then(|outcome| outcome.user.as_ref());
        self.user = user.map(|user| user.id).or(self.user);
        self.write_outcome(outcome);
    }

    /// Writes the entry with an outcome.
    pub fn write_outcome<T>(mut self, outcome: &Result<T, Error>) {
        match outcome {
            Ok(_) => self.emit("done"),
            Err(Error::OutcomeUnknown(_)) => self.emit("unknown"),
            // Nothing was written, and the status logs the failure once for many calls.
            Err(Error::Unavailable(_) | Error::Internal(_) | Error::Overloaded) => {
                self.is_pending = false;
            }
            Err(_) => {
                self.user = self.user.filter(|_| !self.is_creation);
                self.emit("refused");
            }
        }
    }

    fn emit(&mut self, outcome: &'static str) {
        if !std::mem::take(&mut self.is_pending) {
            return;
        }
        let operation = Some(self.purpose.operation_id).filter(|id| !id.is_empty());
        let reason = Some(self.purpose.logged_reason()).filter(|reason| !reason.is_empty());
        tracing::info!(
            caller = self.caller,
            tenant = self.tenant.as_str(),
            method = self.method,
            user = self.user.map(tracing::field::display),
            operation,
            reason,
            outcome,
            ms = self.started.elapsed().as_secs_f64() * 1e3,
            "mutation"
        );
    }
}

/// A call that its caller abandons has no outcome; the mutation may continue.
impl Drop for MutationLog<'_> {
    fn drop(&mut self) {
        self.emit("caller left");
    }
}
