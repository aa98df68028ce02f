//! Authentication by a credentials file, which is read again when it changes.

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::caller::Caller;
use super::credentials::Credentials;
use super::tally::Counts;
use super::token::Token;
use super::usage::{Rate, Usages};
use crate::reload::{self, Content};

/// The gauge of a broken credentials file: its name, and what it shows.
pub const CREDENTIALS_BROKEN: (&str, &str) = (
    "polynym_credentials_broken",
    "1 while the credentials file cannot be used, and the credentials of before count",
);

/// The authentication of callers.
#[derive(Debug)]
pub enum Access {
    /// Every caller is an anonymous admin.
    Open(Arc<Caller>),
    /// Callers need a credential of a file.
    File(CredentialsFile),
}

/// A credentials file and its content.
#[derive(Debug)]
pub struct CredentialsFile {
    path: PathBuf,
    /// The content at the start.
    first: Content,
    current: ArcSwap<Credentials>,
    /// The rates of callers that have none of their own.
    default: Rate,
    usages: Usages,
    is_broken: AtomicBool,
}

impl Access {
    /// Lets every caller in.
    pub fn open() -> Self {
        Self::Open(Arc::new(Caller::anonymous()))
    }

    /// Asks callers for a credential of this file. Callers without rates of their own have the
    /// `default`.
    ///
    /// # Errors
    /// The file cannot be read, is malformed, or has no callers.
    pub fn from_file(path: PathBuf, default: Rate) -> Result<Self, String> {
        let (first, usages) = (reload::content(&path), Usages::default());
        let credentials = first.clone().and_then(|content| read(&content, default, &usages));
        let credentials =
            credentials.map_err(|fault| format!("credentials {}: {fault}", path.display()))?;
        let current = ArcSwap::from_pointee(credentials);
        Ok(Self::File(CredentialsFile {
            path,
            first,
            current,
            default,
            usages,
            is_broken: AtomicBool::new(false),
        }))
    }

    /// Whether callers need credentials.
    pub const fn is_closed(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// Whether the file cannot be used, and the credentials of before count.
    pub fn is_broken(&self) -> bool {
        matches!(self, Self::File(file) if file.is_broken.load(Ordering::Relaxed))
    }

    /// The caller of a call with these headers, on a connection whose client's certificate has
    /// these names; none without a valid credential. Of two `authorization` headers none is valid.
    pub fn caller(&self, headers: &HeaderMap, names: &[String]) -> Option<Arc<Caller>> {
        let Self::File(file) = self else { return self.anonymous() };
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let token = match (values.next(), values.next()) {
            (Some(value), None) => Some(bearer(value.as_bytes())?),
            (None, _) => None,
            (Some(_), Some(_)) => return None,
        };
        file.current.load().caller(token, names, SystemTime::now()).cloned()
    }

    /// Takes the counts of all callers: of each its name and its counts by tenant.
    pub fn take_counts(&self) -> Vec<(String, HashMap<String, Counts>)> {
        let usages = match self {
            Self::Open(caller) => vec![(caller.name.clone(), caller.usage.clone())],
            Self::File(file) => file.usages.all(),
        };
        let counts = usages.into_iter().map(|(name, usage)| (name, usage.tally.take()));
        counts.filter(|(_, counts)| !counts.is_empty()).collect()
    }

    fn anonymous(&self) -> Option<Arc<Caller>> {
        if let Self::Open(anonymous) = self { Some(anonymous.clone()) } else { None }
    }

    /// Reads the file again in a loop, and uses what it finds. A broken file changes nothing.
    pub async fn reload(&self) -> Infallible {
        let Self::File(file) = self else { return std::future::pending().await };
        let path = file.path.clone();
        reload::watch(file.first.clone(), move || reload::content(&path), |now| file.take(now))
            .await
    }
}

impl CredentialsFile {
    fn take(&self, content: &Content) {
        let credentials = content
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|content| read(content, self.default, &self.usages));
        metrics::gauge!(CREDENTIALS_BROKEN.0).set(u8::from(credentials.is_err()));
        self.is_broken.store(credentials.is_err(), Ordering::Relaxed);
        match credentials {
            Ok(credentials) => {
                tracing::info!(credentials = credentials.list().len(), "new credentials are used");
                self.current.store(Arc::new(credentials));
                self.usages.forget_unused();
            }
            Err(fault) => tracing::error!(
                fault,
                "the credentials file cannot be used: the credentials of before count on"
            ),
        }
    }
}

/// A server without callers would refuse every call: an empty file is a fault.
fn read(content: &[u8], default: Rate, usages: &Usages) -> Result<Credentials, String> {
    let text = std::str::from_utf8(content).map_err(|_| "it is not UTF-8".to_owned())?;
    let credentials =
        Credentials::parse(text, default, usages).map_err(|fault| fault.to_string())?;
    if credentials.list().is_empty() {
        return Err("it has no callers: add one with `polynym token create`".to_owned());
    }
    Ok(credentials)
}

/// The token of `Bearer TOKEN` (RFC 6750, section 2.1); the scheme's case does not matter.
pub(super) fn bearer(authorization: &[u8]) -> Option<Token<'_>> {
    let (scheme, token) = std::str::from_utf8(authorization).ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") { Token::parse(token) } else { None }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn headers_other_than_bearer_tokens_are_none() {
        let token = crate::access::generate_token().unwrap();
        let token = token.expose_secret().to_owned();
        for good in [format!("Bearer {token}"), format!("bearer {token}")] {
            assert!(bearer(good.as_bytes()).is_some(), "{good}");
        }
        for wrong in ["", "Bearer", &token, &format!("Basic {token}"), &format!("Bearer  {token}")]
        {
            assert!(bearer(wrong.as_bytes()).is_none(), "{wrong}");
        }
        assert!(bearer(&[0xff, b' ', 0xfe]).is_none());
    }

    #[test]
    fn a_file_needs_callers() {
        let fault = |content| read(content, Rate::default(), &Usages::default()).unwrap_err();
        assert!(fault(b"").contains("no callers"));
        assert!(fault(&[0xff]).contains("UTF-8"));
    }
}
