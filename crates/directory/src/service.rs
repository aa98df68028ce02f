//! The operations of the API, and the background tasks of a server.

pub mod bulk {
    //! Bulk changes.

    pub mod calls;
    pub mod list;
    mod queue;
    pub mod run;
    mod turn;
    mod undoing;
    mod users;
}
pub mod context;
pub mod delivery {
    //! Deliveries of events to receivers.

    pub mod calls;
    pub mod replay;
    pub mod run;
}
pub mod duplicates;
pub mod expiry;
pub mod find {
    //! Finding users by what somebody typed or pasted.

    pub(super) mod attributes;
    pub mod exact;
    pub mod read;
    pub mod reading;
    pub mod request;
    pub mod way;
}
pub mod history;
pub mod inbox;
pub mod log_pause;
pub mod lookup;
pub mod mutate;
mod page_token;
mod parse;
pub mod purpose;
mod read_size;
pub mod renormalization;
pub mod runs;
pub mod scan_pace;
pub mod search;
pub mod tenants;
pub mod transfer;
pub mod usage;
pub mod watch;

use std::sync::Arc;

use locality_uuid::{Generator, Mode};
use tokio::sync::{Notify, Semaphore};

use self::context::RequestContext;
use self::purpose::Purpose;
use super::clock::{CLOCK_AHEAD, Clock, ClockLog, Now};
use super::error::Error;
use super::stores::{Backend, Consistency, StoredRules};
use crate::limits::Limits;
use crate::model::tenant::Tenant;
use crate::tenant_cache::Tenants;
use crate::tenant_queue::TenantQueue;
use polynym_identifier::Rules;
use runs::Runs;

/// The user directory: checks and normalises requests, applies the rules, and stores the results
/// in a [`Backend`].
pub struct Directory {
    backend: Backend,
    ids: Generator,
    /// Ids of notices: those of one millisecond are in order, too.
    notice_ids: Generator,
    limits: Limits,
    tenants: Tenants,
    jobs: TenantQueue,
    /// Whether only admins create tenants other than the default one.
    closed: bool,
    /// The latest rules of normalisation that this build supports.
    rules: Rules,
    clock: Clock,
    clock_log: ClockLog,
    renormalizations: Runs,
    /// The permit to copy the store: one copy is made at a time.
    copying: Arc<Semaphore>,
    /// Wakes the task that runs bulk changes.
    bulk_started: Notify,
    /// Wakes the task that delivers events.
    delivery_changed: Notify,
}

impl Directory {
    /// A directory over `backend` that gives new users ids from `ids`.
    pub fn new(backend: Backend, ids: Generator, limits: Limits) -> Self {
        let clock = Clock::default();
        Self {
            backend,
            ids,
            notice_ids: Generator::new(Mode::Sequential),
            limits,
            tenants: Tenants::default(),
            jobs: TenantQueue::new(clock.clone()),
            closed: false,
            rules: Rules::PRESENT,
            clock,
            clock_log: ClockLog::default(),
            renormalizations: Runs::default(),
            copying: Arc::new(Semaphore::new(1)),
            bulk_started: Notify::new(),
            delivery_changed: Notify::new(),
        }
    }

    /// The same directory, in which only admins create tenants other than the default one.
    #[must_use]
    pub fn closed(self) -> Self {
        Self { closed: true, ..self }
    }

    /// The same directory, with later rules of normalisation than those of this build.
    #[must_use]
    pub fn with_rules(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    /// The same directory, with another clock than the machine's.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { jobs: TenantQueue::new(clock.clone()), clock, ..self }
    }

    /// The clock.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The limits of requests and users.
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether the first change in this tenant creates it.
    fn auto_creates(&self, tenant: &Tenant) -> bool {
        !self.closed || *tenant == Tenant::DEFAULT
    }

    /// The rules that normalise the store's identifiers, and the rules to which the identifiers are
    /// moving, if they are.
    async fn stored_rules(
        &self,
        consistency: Consistency,
    ) -> Result<(Rules, Option<Rules>), Error> {
        let StoredRules { version, next } = self.backend.rules.rules(consistency).await?;
        Ok((self.rules_of(version)?, next.map(|next| self.rules_of(next)).transpose()?))
    }

    /// The rules that normalise the identifiers of a mutation.
    async fn rules_to_change(&self) -> Result<Rules, Error> {
        match self.stored_rules(Consistency::Latest).await? {
            (rules, None) => Ok(rules),
            (_, Some(_)) => Err(Error::RulesChanging),
        }
    }

    fn rules_of(&self, version: u32) -> Result<Rules, Error> {
        if version == self.rules.version() {
            return Ok(self.rules);
        }
        Rules::known(version)
            .ok_or_else(|| Error::Outdated(format!("it has rules version {version}")))
    }

    /// Checks that the store answers.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if it does not.
    pub async fn check(&self) -> Result<(), Error> {
        self.backend.reads.check().await
    }

    /// The present time. Logs when the clocks begin to differ, and when they agree again.
    pub fn now(&self) -> Now {
        let wall = self.clock.now();
        let now = Now::compare(wall, self.backend.clock.time(wall));
        self.clock_log.note(&now);
        now
    }

    /// The present time. Sets the gauge of the clock's lead.
    pub(crate) fn gauged_now(&self) -> Now {
        let now = self.now();
        if let Some(ahead) = now.ahead {
            metrics::gauge!(CLOCK_AHEAD.0).set(ahead as f64 / 1_000.0);
        }
        now
    }

    /// The context of a call that begins now.
    pub fn context<'a>(
        &self,
        tenant: Tenant,
        caller: &'a str,
        method: &'static str,
        request_id: &'a str,
    ) -> RequestContext<'a> {
        let (purpose, now) = (Purpose::default(), self.now());
        RequestContext { tenant, caller, method, request_id, purpose, now }
    }
}
