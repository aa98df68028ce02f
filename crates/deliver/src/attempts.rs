//! The attempts of a server: few at once of each tenant, so that a slow receiver delays nobody
//! else's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use metrics::counter;
use polynym_directory::Tenant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::address::AddressPolicy;
use crate::metrics::ATTEMPTS;
use crate::receiver::{Message, Receiver, Reply, Unreachable, send};

/// The attempts at once, and those of a tenant.
const MAX_AT_ONCE: usize = 512;
const MAX_OF_TENANT: usize = 64;

/// The labels of the counter.
const LABELS: [&str; 6] = ["taken", "later", "refused", "gone", "silent", "unreachable"];

/// Sends messages.
pub struct Attempts {
    policy: AddressPolicy,
    all: Arc<Semaphore>,
    of_tenants: Mutex<HashMap<Tenant, Arc<Semaphore>>>,
}

impl Attempts {
    pub fn new(policy: AddressPolicy) -> Self {
        // A counter that begins with its first event hides it from an increase.
        for label in LABELS {
            counter!(ATTEMPTS.0, "result" => label).increment(0);
        }
        let all = Arc::new(Semaphore::new(MAX_AT_ONCE));
        Self { policy, all, of_tenants: Mutex::default() }
    }

    /// The addresses to which it connects.
    pub const fn policy(&self) -> &AddressPolicy {
        &self.policy
    }

    /// Sends a message once it is the tenant's turn.
    pub async fn send(&self, tenant: &Tenant, receiver: &Receiver, message: Message<'_>) -> Reply {
        let _permits = self.permits(tenant).await;
        let now = SystemTime::now();
        let reply = send(&self.policy, receiver, message, now).await;
        counter!(ATTEMPTS.0, "result" => label(reply)).increment(1);
        reply
    }

    async fn permits(&self, tenant: &Tenant) -> [Option<OwnedSemaphorePermit>; 2] {
        let own = {
            let mut tenants = self.of_tenants.lock().unwrap_or_else(PoisonError::into_inner);
            // Those without an attempt have no other owner.
            tenants.retain(|name, own| name == tenant || Arc::strong_count(own) > 1);
            let new = || Arc::new(Semaphore::new(MAX_OF_TENANT));
            tenants.entry(tenant.clone()).or_insert_with(new).clone()
        };
        [own.acquire_owned().await.ok(), self.all.clone().acquire_owned().await.ok()]
    }
}

/// The result of an attempt, as lists of attempts have it.
pub fn result_of(reply: Reply) -> String {
    match reply {
        Reply::Taken(status) | Reply::Later(status, _) | Reply::Refused(status) => {
            return status.to_string();
        }
        Reply::Gone => "410",
        Reply::Silent => "NO_REPLY",
        Reply::Unreachable(Unreachable::Name) => "NAME_UNKNOWN",
        Reply::Unreachable(Unreachable::Address) => "ADDRESS_REFUSED",
        Reply::Unreachable(Unreachable::Connection) => "UNREACHABLE",
        Reply::Unreachable(Unreachable::Tls) => "TLS_FAILED",
    }
    .to_owned()
}

const fn label(reply: Reply) -> &'static str {
    match reply {
        Reply::Taken(_) => "taken",
        Reply::Later(..) => "later",
        Reply::Refused(_) => "refused",
        Reply::Gone => "gone",
        Reply::Silent => "silent",
        Reply::Unreachable(_) => "unreachable",
    }
}
