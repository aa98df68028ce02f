//! The runs of `Renormalize` in this process: at most one for each tenant, and few in all.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::model::tenant::Tenant;

/// Concurrent runs.
const MAX_RUNS: usize = 8;

/// The tenants that are being renormalised.
#[derive(Clone, Default)]
pub struct Runs(Arc<Mutex<HashSet<Tenant>>>);

/// A run, until it is dropped.
pub struct Run {
    runs: Runs,
    tenant: Tenant,
}

impl Runs {
    /// Begins a run.
    ///
    /// # Errors
    /// [`Error::RenormalizeRunning`] if the tenant has one, [`Error::Overloaded`] if there are too
    /// many.
    pub fn begin(&self, tenant: &Tenant) -> Result<Run, Error> {
        let mut tenants = self.lock();
        if tenants.contains(tenant) {
            return Err(Error::RenormalizeRunning);
        }
        if tenants.len() >= MAX_RUNS {
            return Err(Error::Overloaded);
        }

        tenants.insert(tenant.clone());
        Ok(Run { runs: self.clone(), tenant: tenant.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Tenant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.runs.lock().remove(&self.tenant);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_limited_in_a_tenant_and_in_all() {
        let runs = Runs::default();
        let tenant = |n: usize| Tenant::parse(&format!("tenant-{n}")).unwrap();
        let mut begun: Vec<_> = (0..MAX_RUNS).map(|n| runs.begin(&tenant(n)).unwrap()).collect();
        assert!(matches!(runs.begin(&tenant(1)), Err(Error::RenormalizeRunning)));
        assert!(matches!(runs.begin(&tenant(MAX_RUNS)), Err(Error::Overloaded)));
        begun.truncate(1);
        assert!(runs.begin(&tenant(1)).is_ok());
    }
}
