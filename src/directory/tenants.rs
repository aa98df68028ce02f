//! The tenants' policies as this server knows them: read again when they are a few seconds old.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::{Error, Policies, Store, Tenant};

/// For how long what was read counts. So long another server's change may take to be heeded.
const FRESH: Duration = Duration::from_secs(5);
/// How many tenants are remembered. Callers may make names up.
const MOST: usize = 10_000;

#[derive(Default)]
pub struct Tenants {
    known: RwLock<HashMap<Tenant, Known>>,
}

#[derive(Clone)]
struct Known {
    /// None where there is no such tenant.
    policies: Option<Arc<Policies>>,
    read: Instant,
}

impl Tenants {
    /// The policies of a tenant; none where there is no such tenant. While one caller reads them again, others get the
    /// ones from before; so does everybody while the store is away.
    pub async fn policies(&self, store: &dyn Store, name: &Tenant) -> Result<Option<Arc<Policies>>, Error> {
        let now = Instant::now();
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        match known {
            Some(known) if now < known.read + FRESH => Ok(known.policies),
            Some(Known { policies, .. }) => {
                self.learn(name, policies.clone(), now);
                match store.tenant(name).await {
                    Ok(tenant) => Ok(self.learn(name, tenant.map(|tenant| Arc::new(tenant.policies)), now)),
                    Err(_) => Ok(policies),
                }
            }
            None => {
                let tenant = store.tenant(name).await?;
                Ok(self.learn(name, tenant.map(|tenant| Arc::new(tenant.policies)), now))
            }
        }
    }

    /// Remembers what a tenant's policies are now.
    pub fn learn(&self, name: &Tenant, policies: Option<Arc<Policies>>, read: Instant) -> Option<Arc<Policies>> {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST && !known.contains_key(name) {
            known.clear();
        }
        known.insert(name.clone(), Known { policies: policies.clone(), read });
        policies
    }
}
