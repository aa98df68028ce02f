//! Tenants that wait for what the servers do with them in the background.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::clock::Clock;
use crate::model::tenant::Tenant;
use crate::model::timestamp::Timestamp;
use crate::service::tenant_cache::{FRESH, RETRY};

/// The time between a mark and the first step. A server may rely on cached policies of the
/// tenant for the first part of it, and may then take the time of a call to finish a mutation.
const QUIET: Duration = FRESH.saturating_add(RETRY).saturating_add(Duration::from_secs(10));
/// The pause after a failed step.
pub const PAUSE: Duration = Duration::from_secs(10);

/// The marked tenants that this server has seen.
pub struct TenantQueue {
    marked: Mutex<HashMap<Tenant, Marked>>,
    clock: Clock,
}

/// A tenant that is marked.
struct Marked {
    /// Since when: a tenant of the same name may have been made, and marked, again.
    since: Timestamp,
    /// The earliest time of the next step.
    next: Instant,
}

impl TenantQueue {
    /// An empty queue that goes by the monotonic time of `clock`.
    pub fn new(clock: Clock) -> Self {
        Self { marked: Mutex::default(), clock }
    }

    /// Adds a mark, and returns whether it is new.
    pub fn add(&self, tenant: &Tenant, since: Timestamp) -> bool {
        let mut marked = self.lock();
        if marked.get(tenant).is_some_and(|marked| marked.since == since) {
            return false;
        }
        marked.insert(tenant.clone(), Marked { since, next: self.clock.instant() + QUIET });
        true
    }

    /// The tenants whose time has come.
    pub fn ready(&self) -> Vec<Tenant> {
        let now = self.clock.instant();
        let marked = self.lock();
        marked
            .iter()
            .filter(|(_, marked)| marked.next <= now)
            .map(|(tenant, _)| tenant.clone())
            .collect()
    }

    /// Postpones the next step of a tenant.
    pub fn postpone(&self, tenant: &Tenant) {
        if let Some(marked) = self.lock().get_mut(tenant) {
            marked.next = self.clock.instant() + PAUSE;
        }
    }

    /// Removes a tenant.
    pub fn remove(&self, tenant: &Tenant) {
        self.lock().remove(tenant);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Tenant, Marked>> {
        self.marked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_has_its_own_delay() {
        let (queue, tenant) = (TenantQueue::new(Clock::default()), Tenant::DEFAULT);
        let next = || queue.lock().get(&tenant).map(|marked| marked.next).unwrap();
        assert!(queue.add(&tenant, Timestamp::from_millis(1)));
        let first = next();
        assert!(!queue.add(&tenant, Timestamp::from_millis(1)));
        assert_eq!(next(), first);
        assert!(first > Instant::now() && queue.ready().is_empty());
        queue.clock.skip(QUIET.as_millis() as u64);
        assert_eq!(queue.ready(), std::slice::from_ref(&tenant));
        assert!(queue.add(&tenant, Timestamp::from_millis(2)));
        assert!(queue.ready().is_empty(), "a later mark waits again");
        queue.remove(&tenant);
        assert!(queue.ready().is_empty() && queue.lock().is_empty());
    }
}
