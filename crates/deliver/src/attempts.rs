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
/// The names of a tenant that are looked up at once.
const MAX_RESOLVING_OF_TENANT: usize = 4;

/// Sends messages.
pub struct Attempts {
    policy: AddressPolicy,
    all: Arc<Semaphore>,
    of_tenants: Mutex<HashMap<Tenant, Limits>>,
}

/// What a tenant may do at once.
#[derive(Clone)]
struct Limits {
    attempts: Arc<Semaphore>,
    names: Arc<Semaphore>,
}

/// The right to make an attempt.
pub struct Permits {
    _own: Option<OwnedSemaphorePermit>,
    _all: Option<OwnedSemaphorePermit>,
    /// The look-ups of names of the tenant.
    names: Arc<Semaphore>,
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

    /// Sends a message.
    pub async fn send(&self, permits: Permits, receiver: &Receiver, message: Message<'_>) -> Reply {
        let now = SystemTime::now();
        let reply = send(&self.policy, receiver, message, now, &permits.names).await;
        counter!(ATTEMPTS.0, "result" => label(reply)).increment(1);
        reply
    }

    /// Waits for the tenant's turn.
    pub async fn permits(&self, tenant: &Tenant) -> Permits {
        let own = {
            let mut tenants = self.of_tenants.lock().unwrap_or_else(PoisonError::into_inner);
            // Those without an attempt have no other owner.
            tenants.retain(|name, own| name == tenant || own.is_in_use());
            tenants.entry(tenant.clone()).or_insert_with(Limits::new).clone()
        };
        let Limits { attempts, names } = own;
        let _own = attempts.acquire_owned().await.ok();
        Permits { _own, _all: self.all.clone().acquire_owned().await.ok(), names }
    }
}

impl Limits {
    fn new() -> Self {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Self { attempts: semaphore(MAX_OF_TENANT), names: semaphore(MAX_RESOLVING_OF_TENANT) }
    }

    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.attempts) > 1 || Arc::strong_count(&self.names) > 1
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
        Reply::Unreadable => "UNREADABLE",
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
        // No message is sent then, so that it is not counted.
        Reply::Silent | Reply::Unreadable => "silent",
        Reply::Unreachable(_) => "unreachable",
    }
}
