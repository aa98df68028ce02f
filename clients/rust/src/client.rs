//! The client.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::attempts::Rules;
use crate::attempts::backoff::Backoff;
use crate::attempts::budget::Budget;
use crate::batch::Batches;
use crate::connection::Connection;
use crate::connection::pool::Pool;
use crate::error::Error;
use crate::observer::Observer;
use crate::reasons;
use crate::services::{Admin, Directory, Inbox, Registry};

/// The longest timeout: the deadline of a much longer one overflows an `Instant`.
const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A client of one server, or of several that have the same store. Clones share connections.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    tenant: Arc<str>,
    timeout: Duration,
    /// The attempts that calls have behind them, and the most that they have in all.
    made: u32,
    max_attempts: u32,
}

pub(crate) struct Shared {
    pub pool: Pool,
    pub attempts: u32,
    pub batches: Option<Batches>,
    pub backoff: Backoff,
    pub wait_for_ready: bool,
    pub budget: Budget,
    /// The most identifiers that the server takes in one request.
    pub max_items: AtomicUsize,
    pub observer: Option<Observer>,
}

impl Client {
    /// The look-ups of users.
    pub fn directory(&self) -> Directory {
        Directory(self.clone())
    }

    /// The changes of users.
    pub fn registry(&self) -> Registry {
        Registry(self.clone())
    }

    /// The notices to users.
    pub fn inbox(&self) -> Inbox {
        Inbox(self.clone())
    }

    /// The administration of the directory.
    pub fn admin(&self) -> Admin {
        Admin(self.clone())
    }

    /// The same client with another tenant for requests that name none.
    #[must_use]
    pub fn with_tenant(&self, tenant: &str) -> Self {
        Self { tenant: tenant.into(), ..self.clone() }
    }

    /// The same client with another deadline for calls that set none.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { timeout, ..self.clone() }
    }

    /// A connection to the first server, for calls by the caller's own rules. It is made at the
    /// first call, and again when it is lost.
    pub fn connection(&self) -> Connection {
        self.shared.pool.connection()
    }

    pub(crate) fn new(shared: Shared, tenant: &str, timeout: Duration) -> Self {
        let max_attempts = shared.attempts;
        Self { shared: Arc::new(shared), tenant: tenant.into(), timeout, made: 0, max_attempts }
    }

    /// The same client, whose calls end at a time.
    pub(crate) fn until(&self, deadline: Instant) -> Self {
        self.with_timeout(deadline.saturating_duration_since(Instant::now()))
    }

    /// The same client, whose calls have one more attempt.
    pub(crate) fn once(&self) -> Self {
        Self { max_attempts: self.made + 1, ..self.clone() }
    }

    /// The same client, whose calls have so many attempts behind them.
    pub(crate) fn after_attempts(&self, made: u32) -> Self {
        Self { made, ..self.clone() }
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.shared.pool
    }

    pub(crate) fn tenant(&self) -> &str {
        &self.tenant
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The deadline of a call that begins now.
    pub(crate) fn deadline(&self, timeout: Option<Duration>) -> Instant {
        Instant::now() + timeout.unwrap_or(self.timeout).min(MAX_TIMEOUT)
    }

    pub(crate) fn rules(&self) -> Rules<'_> {
        Rules {
            max: self.max_attempts,
            budget: &self.shared.budget,
            backoff: self.shared.backoff,
            wait_for_ready: self.shared.wait_for_ready,
        }
    }

    pub(crate) fn attempts_made(&self) -> u32 {
        self.made
    }

    /// The most identifiers of one request.
    pub(crate) fn max_items(&self) -> usize {
        self.shared.max_items.load(Ordering::Relaxed)
    }

    /// Learns the most identifiers of one request, if an error says that `count` are too many.
    pub(crate) fn learn_limit(&self, error: &Error, count: usize) -> bool {
        let limit = error.metadata().get("limit").and_then(|limit| limit.parse().ok());
        let is_learned = error.reason() == reasons::BATCH_TOO_LARGE
            && limit.is_some_and(|limit: usize| (1..count).contains(&limit));
        if let Some(limit) = limit.filter(|_| is_learned) {
            self.shared.max_items.fetch_min(limit, Ordering::Relaxed);
        }
        is_learned
    }

    pub(crate) fn observer(&self) -> Option<&Observer> {
        self.shared.observer.as_ref()
    }

    pub(crate) fn batches(&self) -> Option<&Batches> {
        self.shared.batches.as_ref()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Client");
        debug.field("tenant", &self.tenant).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}
