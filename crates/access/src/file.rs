//! Authentication by a credentials file, which is reloaded when it changes.

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use secrecy::SecretString;

use super::caller::Caller;
use super::caller_state::CallerStates;
use super::credentials::Credentials;
use super::edits::{self, EditError, NewToken, Which};
use super::expiry::ExpiryGauges;
use super::people::{PERSON, People, Person, PersonToken};
use super::provider::IdentityProvider;
use super::rate_limiter::RateLimits;
use super::role::Role;
use super::tally::Counts;
use super::token::Token;
use crate::reload::{self, Content};

/// The gauge of an invalid credentials file.
pub const CREDENTIALS_BROKEN: (&str, &str) = (
    "polynym_credentials_broken",
    "1 while the credentials file is invalid and the previous credentials stay in use",
);

/// The interval between two updates of gauges.
const GAUGE_INTERVAL: Duration = Duration::from_secs(1);

/// The authentication of callers.
#[derive(Debug)]
pub enum Access {
    /// Every caller is an anonymous admin.
    Open(Arc<Caller>),
    /// Callers need a credential from a file.
    File(CredentialsFile),
}

/// A credentials file and its content.
#[derive(Debug)]
pub struct CredentialsFile {
    path: PathBuf,
    /// The content when it was first read.
    initial: Content,
    current: ArcSwap<Credentials>,
    /// The limits of callers without their own.
    default: RateLimits,
    states: CallerStates,
    people: Arc<People>,
    is_broken: AtomicBool,
    /// The edits by this program. A content that was read before one is not applied after it.
    edits: Mutex<u64>,
}

impl Access {
    /// Admits every caller.
    pub fn open() -> Self {
        Self::Open(Arc::new(Caller::anonymous()))
    }

    /// Requires a credential from this file. Callers without limits of their own get `default`.
    ///
    /// # Errors
    /// The file is unreadable, malformed, or has no callers.
    pub fn from_file(path: PathBuf, default: RateLimits) -> Result<Self, String> {
        let (initial, states) = (reload::content(&path), CallerStates::default());
        let credentials = initial
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|content| parse(content, default, &states))
            .map_err(|fault| format!("credentials {}: {fault}", path.display()))?;
        Ok(Self::File(CredentialsFile {
            path,
            initial,
            current: ArcSwap::from_pointee(credentials),
            default,
            states,
            people: Arc::default(),
            is_broken: AtomicBool::new(false),
            edits: Mutex::default(),
        }))
    }

    /// Whether callers need credentials.
    pub const fn requires_credentials(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// The credentials file; none if callers need no credentials.
    pub const fn file(&self) -> Option<&CredentialsFile> {
        match self {
            Self::Open(_) => None,
            Self::File(file) => Some(file),
        }
    }

    /// The credentials in use; none if callers need none.
    pub fn credentials(&self) -> Option<Arc<Credentials>> {
        match self {
            Self::Open(_) => None,
            Self::File(file) => Some(file.current.load_full()),
        }
    }

    /// Whether the file is invalid and the previous credentials stay in use.
    pub fn is_broken(&self) -> bool {
        matches!(self, Self::File(file) if file.is_broken.load(Ordering::Relaxed))
    }

    /// The caller of a call with these headers and a client certificate of these names; none
    /// without a valid credential. Two `authorization` headers are invalid.
    pub fn caller(&self, headers: &HeaderMap, names: &[String]) -> Option<Arc<Caller>> {
        let file = match self {
            Self::Open(anonymous) => return Some(anonymous.clone()),
            Self::File(file) => file,
        };
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let token = match (values.next(), values.next()) {
            (Some(value), None) => Some(bearer_token(value.as_bytes())?),
            (None, _) => None,
            (Some(_), Some(_)) => return None,
        };
        let (credentials, now) = (file.current.load(), SystemTime::now());
        let by_file = credentials.caller(token, names, now).cloned();
        // People call from within the program, where no certificate is presented.
        let is_of_person = by_file.is_none() && names.is_empty();
        by_file.or_else(|| {
            file.people.caller(token.filter(|_| is_of_person)?, credentials.provider()?, now)
        })
    }

    /// The provider by which people sign in, if any.
    pub fn provider(&self) -> Option<Arc<IdentityProvider>> {
        match self {
            Self::Open(_) => None,
            Self::File(file) => file.current.load().provider().cloned(),
        }
    }

    /// Lets a person call with the token that is returned, until it is dropped.
    ///
    /// # Errors
    /// Callers need no credentials, or the system has no random bytes.
    pub fn sign_in(&self, person: Person) -> Result<PersonToken, String> {
        let Self::File(file) = self else { return Err("callers need no credentials".to_owned()) };
        file.states.remove_unused();
        file.people.add(person, &file.states)
    }

    /// The id of the token in these headers, and the name of its caller, if it has expired.
    pub fn expired_token(&self, headers: &HeaderMap, names: &[String]) -> Option<(String, String)> {
        let Self::File(file) = self else { return None };
        let token = headers.get(AUTHORIZATION).and_then(|value| bearer_token(value.as_bytes()))?;
        let credentials = file.current.load();
        let caller = credentials.expired_caller(token, names, SystemTime::now())?;
        Some((token.id().to_owned(), caller.to_owned()))
    }

    /// The caller of these headers, as by [`Self::caller`], if its token has not been revoked since
    /// `began`, even if the same token was made again.
    pub fn caller_since(&self, headers: &HeaderMap, began: Instant) -> Option<Arc<Caller>> {
        let caller = self.caller(headers, &[])?;
        let Self::File(file) = self else { return Some(caller) };
        let token = headers.get(AUTHORIZATION).and_then(|value| bearer_token(value.as_bytes()))?;
        file.current.load().has_known(token, began).then_some(caller)
    }

    /// The person with this token, as the caller that the file makes of them now.
    pub fn caller_of(&self, token: &PersonToken) -> Option<Arc<Caller>> {
        let bearer = HeaderValue::try_from(format!("Bearer {}", token.secret())).ok()?;
        self.caller(&HeaderMap::from_iter([(AUTHORIZATION, bearer)]), &[])
    }

    /// Whether the caller with this name has at least this role in the tenant now, such as to go on
    /// with what it began. Without credentials, every caller has. A person who is not signed in at
    /// this server has what a grant gives to anybody: what the provider would say is not known.
    pub fn may(&self, name: &str, role: Role, tenant: &str) -> bool {
        let Self::File(file) = self else { return true };
        let (credentials, now) = (file.current.load(), SystemTime::now());
        if !name.starts_with(PERSON) {
            let caller = credentials.caller_named(name, now);
            return caller.is_some_and(|caller| caller.may(role, tenant));
        }
        credentials.provider().is_some_and(|provider| {
            let known = file.people.may(name, provider, (role, tenant), now);
            known.unwrap_or_else(|| provider.gives(role, tenant))
        })
    }

    /// Takes the counts of all callers: their names and counts by tenant.
    pub fn take_counts(&self) -> Vec<(String, HashMap<String, Counts>)> {
        let states = match self {
            Self::Open(caller) => vec![(caller.name.clone(), caller.state.clone())],
            Self::File(file) => file.states.all(),
        };
        states
            .into_iter()
            .map(|(name, state)| (name, state.tally.take()))
            .filter(|(_, counts)| !counts.is_empty())
            .collect()
    }

    /// Reloads the file and updates the gauges in a loop. An invalid file changes nothing.
    pub async fn reload(self: &Arc<Self>) -> Infallible {
        let Self::File(file) = &**self else { return std::future::pending().await };
        let access = self.clone();
        let read = move || access.file().map(CredentialsFile::read);
        let initial = Some((0, file.initial.clone()));
        let reload = reload::watch(initial, read, |read| file.apply_read(read.as_ref()));
        tokio::select! {
            never = reload => never,
            never = file.update_gauges() => never,
        }
    }
}

impl CredentialsFile {
    /// Checks that this program may change the file, without changing it.
    ///
    /// # Errors
    /// It may not. What to do instead.
    pub fn check_writable(&self) -> Result<(), EditError> {
        edits::check(&self.path)
    }

    /// Adds a token, which callers may use at once. Returns it: the file has its hash alone.
    ///
    /// # Errors
    /// As for [`edits::create`].
    pub fn create(&self, new: &NewToken) -> Result<SecretString, EditError> {
        edits::create(&self.path, new, |text| self.apply_edit(text))
    }

    /// Gives credentials another expiry at once; none for never. Returns their number.
    ///
    /// # Errors
    /// As for [`edits::extend`].
    pub fn extend(&self, which: &Which, expires: Option<SystemTime>) -> Result<usize, EditError> {
        edits::extend(&self.path, which, expires, |text| self.apply_edit(text))
    }

    /// Revokes credentials at once. Returns their number.
    ///
    /// # Errors
    /// As for [`edits::revoke`].
    pub fn revoke(&self, which: &Which) -> Result<usize, EditError> {
        edits::revoke(&self.path, which, |text| self.apply_edit(text))
    }

    /// The number of edits so far, and the content then.
    fn read(&self) -> (u64, Content) {
        let edits = *self.edits.lock().unwrap_or_else(PoisonError::into_inner);
        (edits, reload::content(&self.path))
    }

    fn apply_edit(&self, text: &str) {
        let mut edits = self.edits.lock().unwrap_or_else(PoisonError::into_inner);
        *edits += 1;
        self.apply(&Ok(text.as_bytes().to_vec()));
    }

    fn apply_read(&self, read: Option<&(u64, Content)>) {
        let edits = self.edits.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, content)) = read.filter(|(before, _)| *before == *edits) {
            self.apply(content);
        }
    }

    async fn update_gauges(&self) -> Infallible {
        let mut gauges = ExpiryGauges::default();
        loop {
            gauges.set(&self.current.load(), SystemTime::now());
            tokio::time::sleep(GAUGE_INTERVAL).await;
        }
    }

    fn apply(&self, content: &Content) {
        let credentials = content
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|content| parse(content, self.default, &self.states));
        metrics::gauge!(CREDENTIALS_BROKEN.0).set(u8::from(credentials.is_err()));
        self.is_broken.store(credentials.is_err(), Ordering::Relaxed);
        match credentials {
            Ok(mut credentials) => {
                credentials.follow(&self.current.load());
                tracing::info!(credentials = credentials.list().len(), "reloaded the credentials");
                self.current.store(Arc::new(credentials));
                self.states.remove_unused();
            }
            Err(fault) => tracing::error!(
                fault,
                "the credentials file is invalid: the previous credentials stay in use"
            ),
        }
    }
}

/// Parses a file. An empty one is an error: without callers a server would refuse every call.
fn parse(
    content: &[u8],
    default: RateLimits,
    states: &CallerStates,
) -> Result<Credentials, String> {
    let text = std::str::from_utf8(content).map_err(|_| "the file is not UTF-8".to_owned())?;
    let credentials =
        Credentials::parse(text, default, states).map_err(|fault| fault.to_string())?;
    if credentials.list().is_empty() && credentials.provider().is_none() {
        return Err("the file has no callers: add one with `polynym token create`".to_owned());
    }
    Ok(credentials)
}

/// Parses `Bearer TOKEN` (RFC 6750, section 2.1), with the scheme in any case.
pub(super) fn bearer_token(authorization: &[u8]) -> Option<Token<'_>> {
    let (scheme, token) = std::str::from_utf8(authorization).ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") { Token::parse(token) } else { None }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn only_bearer_tokens_are_accepted() {
        let secret = crate::generate_token().unwrap();
        let token = secret.expose_secret();
        for good in [format!("Bearer {token}"), format!("bearer {token}")] {
            assert!(bearer_token(good.as_bytes()).is_some(), "{good}");
        }
        for invalid in ["", "Bearer", token, &format!("Basic {token}"), &format!("Bearer  {token}")]
        {
            assert!(bearer_token(invalid.as_bytes()).is_none(), "{invalid}");
        }
        assert!(bearer_token(&[0xff, b' ', 0xfe]).is_none());
    }

    #[test]
    fn a_file_needs_callers() {
        let fault =
            |content| parse(content, RateLimits::default(), &CallerStates::default()).unwrap_err();
        assert!(fault(b"").contains("no callers"));
        assert!(fault(&[0xff]).contains("UTF-8"));
    }
}
