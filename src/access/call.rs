//! One call of a caller.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::caller::Caller;
use super::tally::Metric;

/// A call: its caller, and the tenant in which it works, once that is known.
#[derive(Debug)]
pub struct Call {
    caller: Arc<Caller>,
    tenant: OnceLock<String>,
}

impl Call {
    /// A call of this caller.
    pub const fn new(caller: Arc<Caller>) -> Self {
        Self { caller, tenant: OnceLock::new() }
    }

    /// The caller.
    pub const fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// The call works in this tenant, in which its caller may work.
    pub fn set_tenant(&self, tenant: &str) {
        let _ = self.tenant.set(tenant.to_owned());
    }

    /// Counts something in the tenant of the call. Before that is known, nothing is counted.
    pub fn count(&self, metric: Metric, count: u64) {
        if let Some(tenant) = self.tenant.get() {
            self.caller.usage.tally.add(tenant, metric, count);
        }
    }
}

impl Deref for Call {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.caller
    }
}
