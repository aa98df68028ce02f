//! The log line of a mutation: the caller, the user and the outcome, and never an identifier.

use std::time::Instant;

use locality_uuid::LocalityId;

use crate::error::Error;
use crate::model::tenant::Tenant;
use crate::mutation::read_set::Outcome;
use crate::service::context::{MutationCall, RequestContext};

/// The log line of a mutation under way.
pub struct MutationLog<'a> {
    caller: &'a str,
    tenant: Tenant,
    method: &'static str,
    user: Option<LocalityId>,
    begun: Instant,
    /// Whether the line is still to be logged. A dry run has none.
    is_due: bool,
}

impl<'a> MutationLog<'a> {
    /// The line of a call that is about this user, or about none.
    pub fn new(call: &MutationCall<'a>, user: Option<LocalityId>) -> Self {
        let mut line = Self::of(&call.context, user);
        line.is_due = !call.dry_run;
        line
    }

    /// The line of a call that is no mutation of the directory, but changes something.
    pub fn of(context: &RequestContext<'a>, user: Option<LocalityId>) -> Self {
        Self {
            caller: context.caller,
            tenant: context.tenant.clone(),
            method: context.method,
            user,
            begun: Instant::now(),
            is_due: true,
        }
    }

    /// Logs the line with the outcome of a mutation.
    pub fn log(mut self, outcome: &Result<Outcome, Error>) {
        // A request that is sent again is answered with the user that it made before.
        let user = outcome.as_ref().ok().and_then(|outcome| outcome.user.as_ref());
        self.user = user.map(|user| user.id).or(self.user);
        self.log_outcome(outcome);
    }

    /// Logs the line with an outcome.
    pub fn log_outcome<T>(mut self, outcome: &Result<T, Error>) {
        match outcome {
            Ok(_) => self.write("done"),
            Err(Error::OutcomeUnknown(_)) => self.write("unknown"),
            // Nothing was written, and the failure itself is logged once for many calls.
            Err(Error::Unavailable(_) | Error::Internal(_) | Error::Overloaded) => {
                self.is_due = false;
            }
            Err(_) => self.write("refused"),
        }
    }

    fn write(&mut self, outcome: &'static str) {
        if !std::mem::take(&mut self.is_due) {
            return;
        }
        tracing::info!(
            caller = self.caller,
            tenant = self.tenant.as_str(),
            method = self.method,
            user = self.user.map(tracing::field::display),
            outcome,
            ms = self.begun.elapsed().as_secs_f64() * 1e3,
            "mutation"
        );
    }
}

/// A caller that leaves gets no outcome; the mutation may go on.
impl Drop for MutationLog<'_> {
    fn drop(&mut self) {
        self.write("caller left");
    }
}
