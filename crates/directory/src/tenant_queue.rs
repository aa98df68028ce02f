//! Tenants with background jobs: their deletion, and changes of their indexes and of the retention
//! of their history.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::clock::Clock;
use crate::model::tenant::Tenant;
use crate::model::tenant_record::TenantRecord;
use crate::tenant_cache::{FRESH, RETRY};
use crate::timestamp::Timestamp;

/// The time between the mark of a job and its first step. A server may rely on cached policies of
/// the tenant for the first part of it, and may then take the time of a call to finish a mutation.
const START_DELAY: Duration = FRESH.saturating_add(RETRY).saturating_add(Duration::from_secs(10));
/// The delay after a failed step.
pub const RETRY_DELAY: Duration = Duration::from_secs(10);

/// A background job of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TenantJob {
    /// Deletes the tenant.
    Deletion,
    /// Stores the users again that have an attribute whose index changes.
    IndexChange,
    /// Removes history beyond a shorter retention.
    HistoryChange,
}

impl TenantJob {
    /// All jobs.
    pub const ALL: [Self; 3] = [Self::Deletion, Self::IndexChange, Self::HistoryChange];

    /// The time when the tenant was marked for the job, if it is.
    pub fn marked_at(self, tenant: &TenantRecord) -> Option<Timestamp> {
        match self {
            Self::Deletion => tenant.deletion.map(|deletion| deletion.time),
            Self::IndexChange => tenant.policies.index_change(),
            Self::HistoryChange => tenant.policies.history_change,
        }
    }
}

/// The jobs that this server has found.
pub struct TenantQueue {
    jobs: Mutex<HashMap<(TenantJob, Tenant), QueuedJob>>,
    clock: Clock,
}

struct QueuedJob {
    /// When the tenant was marked: a tenant of the same name may be created and marked again.
    marked_at: Timestamp,
    /// The earliest time of the next step.
    next: Instant,
}

impl TenantQueue {
    /// An empty queue that goes by the monotonic time of `clock`.
    pub fn new(clock: Clock) -> Self {
        Self { jobs: Mutex::default(), clock }
    }

    /// Adds a job, and returns whether it is new.
    pub fn add(&self, job: TenantJob, tenant: &Tenant, marked_at: Timestamp) -> bool {
        let (mut jobs, key) = (self.lock(), (job, tenant.clone()));
        if jobs.get(&key).is_some_and(|queued| queued.marked_at == marked_at) {
            return false;
        }
        jobs.insert(key, QueuedJob { marked_at, next: self.clock.instant() + START_DELAY });
        true
    }

    /// The tenants for which this job is due.
    pub fn due(&self, job: TenantJob) -> Vec<Tenant> {
        let now = self.clock.instant();
        self.lock()
            .iter()
            .filter(|((queued, _), times)| *queued == job && times.next <= now)
            .map(|((_, tenant), _)| tenant.clone())
            .collect()
    }

    /// Postpones the next step of a tenant.
    pub fn postpone(&self, job: TenantJob, tenant: &Tenant) {
        if let Some(queued) = self.lock().get_mut(&(job, tenant.clone())) {
            queued.next = self.clock.instant() + RETRY_DELAY;
        }
    }

    /// Removes a tenant.
    pub fn remove(&self, job: TenantJob, tenant: &Tenant) {
        self.lock().remove(&(job, tenant.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(TenantJob, Tenant), QueuedJob>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Now;
    use crate::model::policies::SETTLE_TIME;

    #[test]
    fn policies_settle_before_their_former_ones_are_forgotten() {
        assert!(SETTLE_TIME >= START_DELAY + 2 * Now::TOLERANCE);
    }

    #[test]
    fn every_mark_has_its_own_delay() {
        let (queue, tenant) = (TenantQueue::new(Clock::default()), Tenant::DEFAULT);
        let job = TenantJob::IndexChange;
        let next = || queue.lock().get(&(job, tenant.clone())).map(|queued| queued.next).unwrap();
        assert!(queue.add(job, &tenant, Timestamp::from_millis(1)));
        let first = next();
        assert!(!queue.add(job, &tenant, Timestamp::from_millis(1)));
        assert_eq!(next(), first);
        assert!(first > Instant::now() && queue.due(job).is_empty());
        queue.clock.skip(START_DELAY);
        assert_eq!(queue.due(job), std::slice::from_ref(&tenant));
        assert!(queue.due(TenantJob::Deletion).is_empty());
        assert!(queue.add(job, &tenant, Timestamp::from_millis(2)));
        assert!(queue.due(job).is_empty(), "a later mark has a delay of its own");
        queue.remove(job, &tenant);
        assert!(queue.due(job).is_empty() && queue.lock().is_empty());
    }
}
