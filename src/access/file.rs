//! Authentication by a credentials file, which is read again when it changes.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;

use super::caller::Caller;
use super::credentials::Credentials;
use super::token::Token;
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
    /// Callers need a token of a file.
    Tokens(TokenFile),
}

/// A credentials file and its content.
#[derive(Debug)]
pub struct TokenFile {
    path: PathBuf,
    /// The content at the start.
    first: Content,
    current: ArcSwap<Credentials>,
}

impl Access {
    /// Lets every caller in.
    pub fn open() -> Self {
        Self::Open(Arc::new(Caller::anonymous()))
    }

    /// Asks callers for a token of this file.
    ///
    /// # Errors
    /// The file cannot be read, is malformed, or has no callers.
    pub fn from_file(path: PathBuf) -> Result<Self, String> {
        let first = reload::content(&path);
        let credentials = first.clone().and_then(|content| read(&content));
        let credentials =
            credentials.map_err(|fault| format!("credentials {}: {fault}", path.display()))?;
        let current = ArcSwap::from_pointee(credentials);
        Ok(Self::Tokens(TokenFile { path, first, current }))
    }

    /// The caller of a call with this `authorization` header; none without a valid credential.
    pub fn caller(&self, authorization: Option<&[u8]>) -> Option<Arc<Caller>> {
        match self {
            Self::Open(anonymous) => Some(anonymous.clone()),
            Self::Tokens(file) => {
                let token = bearer(authorization?)?;
                file.current.load().caller(&token, SystemTime::now()).cloned()
            }
        }
    }

    /// Reads the file again in a loop, and uses what it finds. A broken file changes nothing.
    pub async fn reload(&self) -> Infallible {
        let Self::Tokens(file) = self else { return std::future::pending().await };
        let path = file.path.clone();
        reload::watch(file.first.clone(), move || reload::content(&path), |now| file.take(now))
            .await
    }
}

impl TokenFile {
    fn take(&self, content: &Content) {
        let credentials = content.as_ref().map_err(Clone::clone).and_then(|content| read(content));
        metrics::gauge!(CREDENTIALS_BROKEN.0).set(u8::from(credentials.is_err()));
        match credentials {
            Ok(credentials) => {
                tracing::info!(credentials = credentials.list().len(), "new credentials are used");
                self.current.store(Arc::new(credentials));
            }
            Err(fault) => tracing::error!(
                fault,
                "the credentials file cannot be used: the credentials of before count on"
            ),
        }
    }
}

/// A server without callers would refuse every call: an empty file is a fault.
fn read(content: &[u8]) -> Result<Credentials, String> {
    let text = std::str::from_utf8(content).map_err(|_| "it is not UTF-8".to_owned())?;
    let credentials = Credentials::parse(text).map_err(|fault| fault.to_string())?;
    if credentials.list().is_empty() {
        return Err("it has no callers: add one with `polynym token create`".to_owned());
    }
    Ok(credentials)
}

/// The token of `Bearer TOKEN` (RFC 6750, section 2.1); the scheme's case does not matter.
fn bearer(authorization: &[u8]) -> Option<Token> {
    let (scheme, token) = std::str::from_utf8(authorization).ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") { Token::parse(token) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_other_than_bearer_tokens_are_none() {
        let token = Token::generate().unwrap().expose();
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
        assert!(read(b"").unwrap_err().contains("no callers"));
        assert!(read(&[0xff]).unwrap_err().contains("UTF-8"));
    }
}
