//! Sign-ins by the provider of the credentials file.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use polynym_access::IdentityProvider;
use polynym_oidc::{Fault, Pending, Provider, Seal};

use super::kept_forms::KeptForms;

/// The provider, and what sign-ins need until they end.
pub struct Providers {
    /// The provider of the last sign-in: the file may name another since.
    current: Mutex<Option<Arc<Provider>>>,
    seal: LazyLock<Result<Seal, Fault>>,
    /// The forms to send again after a sign-in.
    pub kept: KeptForms,
}

impl Default for Providers {
    fn default() -> Self {
        let (current, kept) = (Mutex::default(), KeptForms::default());
        Self { current, seal: LazyLock::new(Seal::random), kept }
    }
}

impl Providers {
    /// The provider of these settings.
    pub fn of(&self, settings: &IdentityProvider) -> Arc<Provider> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        match &*current {
            Some(provider) if provider.issuer() == settings.issuer => provider.clone(),
            _ => current.insert(Arc::new(Provider::new(&settings.issuer))).clone(),
        }
    }

    /// A sign-in that has begun, as the browser keeps it.
    ///
    /// # Errors
    /// It is too long, or the system has no random bytes.
    pub fn seal(&self, pending: &Pending) -> Result<String, Fault> {
        self.seal.as_ref().map_err(Clone::clone)?.seal(pending)
    }

    /// The sign-in in the text of a browser, if this server sealed it.
    pub fn open(&self, sealed: &str) -> Option<Pending> {
        self.seal.as_ref().ok()?.open(sealed)
    }
}
