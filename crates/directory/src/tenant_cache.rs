//! A cache of the tenants' policies, with a lifetime of a few seconds.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::time::timeout;

use crate::error::Error;
use crate::model::policies::Policies;
use crate::model::tenant::Tenant;
use crate::model::tenant_record::TenantRecord;
use crate::stores::Tenants as TenantStore;
use crate::timestamp::Timestamp;

/// The lifetime of policies, from the beginning of their read. A change on another server takes
/// effect after it, and up to [`RETRY`] later if the caller that refreshes the policies leaves.
pub const FRESH: Duration = Duration::from_secs(5);
/// The delay before old policies are read again if the last read has failed or not returned, and
/// the most time that a caller who has old policies waits for newer ones.
pub const RETRY: Duration = Duration::from_secs(1);
const LATE: &str = "the read of a tenant is late";
/// Tenants in the cache: callers may invent names.
const MAX_TENANTS: usize = 10_000;

/// The policies of tenants, cached for some seconds.
#[derive(Clone, Default)]
pub struct Tenants {
    known: Arc<RwLock<HashMap<Tenant, Known>>>,
}

/// The cached policies of a tenant. The default is a tenant that does not exist yet.
#[derive(Clone, Default)]
pub struct KnownTenant {
    /// The time when it was created.
    pub since: Timestamp,
    /// Its policies.
    pub policies: Arc<Policies>,
    /// Whether it is being deleted.
    pub is_deleted: bool,
}

impl From<&TenantRecord> for KnownTenant {
    fn from(tenant: &TenantRecord) -> Self {
        Self {
            since: tenant.since,
            policies: Arc::new(tenant.policies.clone()),
            is_deleted: tenant.deletion.is_some(),
        }
    }
}

struct Known {
    /// None if the tenant does not exist.
    tenant: Option<KnownTenant>,
    /// The time when the operation began that returned the policies.
    began: Instant,
    /// An instant at which the tenant had these policies, or later ones.
    valid_at: Instant,
    /// The time when the last read began, whether or not it has returned.
    tried: Instant,
}

impl Tenants {
    /// A tenant; none if it does not exist. While one caller refreshes it, others get the old
    /// policies; so do all callers while the store does not answer.
    pub async fn get(
        &self,
        store: &Arc<dyn TenantStore>,
        name: &Tenant,
    ) -> Result<Option<KnownTenant>, Error> {
        let read = || {
            let (store, name) = (store.clone(), name.clone());
            async move { store.tenant(&name).await }
        };
        self.get_at(Instant::now(), name, read).await
    }

    async fn get_at<F>(
        &self,
        now: Instant,
        name: &Tenant,
        read: impl FnOnce() -> F,
    ) -> Result<Option<KnownTenant>, Error>
    where
        F: Future<Output = Result<Option<TenantRecord>, Error>> + Send + 'static,
    {
        if let Some((tenant, is_old)) = self.known(name, now)
            && !(is_old && self.begin_read(name, now))
        {
            return Ok(tenant);
        }

        let mut read = Box::pin(read());
        let outcome = match self.known(name, now) {
            None => read.await,
            Some(_) => timeout(RETRY, &mut read).await.unwrap_or_else(|_| {
                let (tenants, name) = (self.clone(), name.clone());
                tokio::spawn(async move { Some(tenants.learn_read(&name, read.await.ok()?, now)) });
                Err(Error::Unavailable(LATE.into()))
            }),
        };
        match outcome {
            Ok(tenant) => Ok(self.learn_read(name, tenant, now)),
            Err(error) => self.known(name, now).map(|(tenant, _)| tenant).ok_or(error),
        }
    }

    /// The cached tenant, and whether it is old.
    fn known(&self, name: &Tenant, now: Instant) -> Option<(Option<KnownTenant>, bool)> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(name).map(|known| (known.tenant.clone(), now >= known.began + FRESH))
    }

    /// Whether the caller should refresh stale policies: no other caller has tried recently.
    fn begin_read(&self, name: &Tenant, now: Instant) -> bool {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = known.get_mut(name) else { return true };
        let is_due = now >= known.tried + RETRY;
        if is_due {
            known.tried = now;
        }
        is_due
    }

    /// Stores the result of a read that began at `began`. Returns the cached tenant, which a change
    /// during the read may have made newer.
    fn learn_read(
        &self,
        name: &Tenant,
        tenant: Option<TenantRecord>,
        began: Instant,
    ) -> Option<KnownTenant> {
        let tenant = tenant.as_ref().map(KnownTenant::from);
        self.learn(name, Known { tenant, began, valid_at: began, tried: began })
    }

    /// Stores a tenant after a change that began at `began` and has just ended.
    pub fn learn_change(&self, name: &Tenant, tenant: Option<KnownTenant>, began: Instant) {
        self.learn(name, Known { tenant, began, valid_at: Instant::now(), tried: began });
    }

    fn learn(&self, name: &Tenant, new: Known) -> Option<KnownTenant> {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_TENANTS && !known.contains_key(name) {
            known.clear();
        }

        match known.get(name) {
            Some(known) if known.valid_at > new.valid_at => known.tenant.clone(),
            _ => {
                let tenant = new.tenant.clone();
                known.insert(name.clone(), new);
                tenant
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, ready};

    use futures_util::FutureExt;
    use tokio::time::sleep;

    use super::*;

    const TICK: Duration = Duration::from_millis(1);

    fn record(undo_window: u64) -> TenantRecord {
        let policies =
            Policies { undo_window: Duration::from_secs(undo_window), ..Policies::default() };
        let time = Timestamp::from_millis(0);
        let unknown = Default::default();
        TenantRecord {
            name: Tenant::DEFAULT,
            policies,
            create_time: time,
            since: time,
            update_time: time,
            deletion: None,
            unknown,
        }
    }

    /// The answer to a caller at `now` whose read would return `read`, and whether it read.
    fn ask(tenants: &Tenants, now: Instant, read: Result<u64, ()>) -> (Option<u64>, bool) {
        let is_read = Cell::new(false);
        let read = || {
            is_read.set(true);
            let away = |()| Error::Unavailable("away".into());
            ready(read.map(|undo_window| Some(record(undo_window))).map_err(away))
        };
        let found = tenants.get_at(now, &Tenant::DEFAULT, read).now_or_never().unwrap();
        let undo_window = found.ok().flatten().map(|tenant| tenant.policies.undo_window.as_secs());
        (undo_window, is_read.get())
    }

    #[tokio::test]
    async fn an_abandoned_read_refreshes_nothing() {
        let (tenants, start) = (Tenants::default(), Instant::now());
        assert_eq!(ask(&tenants, start, Ok(1)), (Some(1), true));
        assert_eq!(ask(&tenants, start + FRESH - TICK, Ok(2)), (Some(1), false));
        let old = start + FRESH;
        let left = tenants.get_at(old, &Tenant::DEFAULT, pending).now_or_never();
        assert!(left.is_none());
        assert_eq!(
            ask(&tenants, old + RETRY - TICK, Ok(2)),
            (Some(1), false),
            "other callers do not wait for it"
        );
        assert_eq!(ask(&tenants, old + RETRY, Ok(2)), (Some(2), true));
    }

    #[tokio::test]
    async fn a_slow_store_delays_a_caller_by_a_second() {
        let (tenants, start) = (Tenants::default(), Instant::now());
        assert_eq!(ask(&tenants, start, Ok(1)), (Some(1), true));
        let (old, late) = (start + FRESH, Duration::from_millis(200));
        let slow = || async move {
            sleep(RETRY + late).await;
            Ok(Some(record(2)))
        };
        let known = tenants.get_at(old, &Tenant::DEFAULT, slow).await.unwrap();
        assert_eq!(known.unwrap().policies.undo_window.as_secs(), 1);
        assert!(start.elapsed() < RETRY + late);
        sleep(2 * late).await;
        assert_eq!(ask(&tenants, old, Ok(3)), (Some(2), false), "the read went on");
    }

    #[tokio::test]
    async fn a_failed_read_refreshes_nothing() {
        let (tenants, start) = (Tenants::default(), Instant::now());
        assert_eq!(ask(&tenants, start, Err(())), (None, true));
        assert_eq!(ask(&tenants, start, Ok(1)), (Some(1), true));
        let old = start + FRESH;
        assert_eq!(ask(&tenants, old, Err(())), (Some(1), true), "the old policies");
        assert_eq!(ask(&tenants, old + TICK, Ok(2)), (Some(1), false));
        assert_eq!(ask(&tenants, old + RETRY, Ok(2)), (Some(2), true));
    }

    #[tokio::test]
    async fn a_change_during_a_failed_read_is_seen() {
        let (tenants, start) = (Tenants::default(), Instant::now());
        assert_eq!(ask(&tenants, start, Ok(1)), (Some(1), true));
        let old = start + FRESH;
        let changed = tenants.clone();
        let read = || async move {
            let tenant = Some(KnownTenant::from(&record(2)));
            changed.learn_change(&Tenant::DEFAULT, tenant, old);
            Err(Error::Unavailable("away".into()))
        };
        let known = tenants.get_at(old, &Tenant::DEFAULT, read).await.unwrap();
        assert_eq!(known.unwrap().policies.undo_window.as_secs(), 2);
    }

    #[tokio::test]
    async fn policies_age_from_the_start_of_their_read() {
        let (tenants, start) = (Tenants::default(), Instant::now());
        let mut slow = std::pin::pin!(tenants.get_at(start, &Tenant::DEFAULT, || async {
            tokio::task::yield_now().await;
            Ok(Some(record(1)))
        }));
        assert!(slow.as_mut().now_or_never().is_none());
        let fast = ask(&tenants, start + 2 * TICK, Ok(2));
        assert_eq!(fast, (Some(2), true));
        let record = slow.now_or_never().unwrap().unwrap().unwrap();
        assert_eq!(record.policies.undo_window.as_secs(), 2, "a later read has returned earlier");
        assert_eq!(ask(&tenants, start + FRESH + TICK, Ok(3)), (Some(2), false));
        assert_eq!(ask(&tenants, start + FRESH + 2 * TICK, Ok(3)), (Some(3), true));
    }

    #[tokio::test]
    async fn a_read_that_began_before_a_change_does_not_undo_it() {
        let (tenants, start) = (Tenants::default(), Instant::now());
        tenants.learn_change(&Tenant::DEFAULT, Some(KnownTenant::from(&record(2))), start);
        let known = tenants.learn_read(&Tenant::DEFAULT, None, start).unwrap();
        assert_eq!(known.policies.undo_window.as_secs(), 2);
        assert_eq!(
            ask(&tenants, start + FRESH, Ok(3)),
            (Some(3), true),
            "a change ages from its start"
        );
    }
}
