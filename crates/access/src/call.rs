//! One call of a caller.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::caller::Caller;
use super::tally::Metric;

/// A call: its caller, its method, and its tenant once that is known.
#[derive(Debug)]
pub struct Call {
    caller: Arc<Caller>,
    method: &'static str,
    purpose: CallPurpose,
    tenant: OnceLock<String>,
}

/// The reason why the caller makes the call, by its headers.
#[derive(Clone, Debug, Default)]
pub struct CallPurpose {
    /// The reason; may be empty.
    pub reason: String,
    /// The id of the operation that the call belongs to; may be empty.
    pub operation_id: String,
}

impl Call {
    /// A call of a method, such as `GetUser`.
    pub const fn new(caller: Arc<Caller>, method: &'static str, purpose: CallPurpose) -> Self {
        Self { caller, method, purpose, tenant: OnceLock::new() }
    }

    /// The reason why the caller makes it.
    pub const fn purpose(&self) -> &CallPurpose {
        &self.purpose
    }

    /// The caller.
    pub const fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// The name of the method.
    pub const fn method(&self) -> &'static str {
        self.method
    }

    /// Sets the tenant, which the caller may work in.
    pub fn set_tenant(&self, tenant: &str) {
        let _ = self.tenant.set(tenant.to_owned());
    }

    /// The tenant, once it is known.
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.get().map(String::as_str)
    }

    /// Adds to a metric of the call's tenant, once that is known.
    pub fn count(&self, metric: Metric, count: u64) {
        if let Some(tenant) = self.tenant.get() {
            self.caller.state.tally.add(tenant, metric, count);
        }
    }
}

impl Deref for Call {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.caller
    }
}
