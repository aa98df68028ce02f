//! The people who are signed in by an identity provider. Each sign-in has a token of this server
//! alone, which no file has and which leaves the program never; what it may do is decided anew by
//! the grants of the file for each call.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use secrecy::{ExposeSecret, SecretString};

use super::caller::Caller;
use super::caller_state::{CallerState, CallerStates};
use super::provider::{ClaimNames, IdentityProvider};
use super::rate_limiter::RateLimits;
use super::role::Role;
use super::token::{self, Token, TokenHash};

/// The beginning of the names of people: no name of a caller with a token has a colon.
pub const PERSON: &str = "oidc:";
/// The maximum bytes of a person's name after that.
const MAX_NAME_BYTES: usize = 120;

/// Somebody whom the provider has named.
#[derive(Clone, Debug)]
pub struct Person {
    /// The name in logs and histories, by [`person_name`].
    pub name: String,
    /// The groups that had a grant.
    pub groups: BTreeSet<String>,
    /// When the sign-in ends.
    pub expires: SystemTime,
    /// The provider that said so.
    pub source: Source,
}

/// Where a person's name and groups come from. If the file names another, they count no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    issuer: String,
    client_id: String,
    claims: ClaimNames,
}

impl Source {
    /// The provider of the file.
    pub fn of(provider: &IdentityProvider) -> Self {
        Self {
            issuer: provider.issuer.clone(),
            client_id: provider.client_id.clone(),
            claims: provider.claims.clone(),
        }
    }
}

/// The name of a person by a claim; none if the claim has characters that a name may not have.
pub fn person_name(claim: &str) -> Option<String> {
    let is_char = |b: u8| b.is_ascii_alphanumeric() || b"._+-@".contains(&b);
    let is_name = (1..=MAX_NAME_BYTES).contains(&claim.len()) && claim.bytes().all(is_char);
    is_name.then(|| format!("{PERSON}{claim}"))
}

/// A person who is signed in.
struct SignedIn {
    person: Person,
    hash: TokenHash,
    state: Arc<CallerState>,
}

/// All who are signed in, by the ids of their tokens.
#[derive(Default)]
pub struct People(Mutex<HashMap<String, Arc<SignedIn>>>);

impl fmt::Debug for People {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("People")
    }
}

/// The token of somebody who is signed in. The sign-in ends when it is dropped.
pub struct PersonToken {
    secret: SecretString,
    id: String,
    people: Arc<People>,
}

impl PersonToken {
    /// The token, for calls within the program.
    pub fn secret(&self) -> &str {
        self.secret.expose_secret()
    }
}

impl Drop for PersonToken {
    fn drop(&mut self) {
        self.people.lock().remove(&self.id);
    }
}

impl People {
    /// Adds somebody. Returns the token.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub(super) fn add(
        self: &Arc<Self>,
        person: Person,
        states: &CallerStates,
    ) -> Result<PersonToken, String> {
        let secret = token::generate()?;
        let token = Token::parse(secret.expose_secret()).ok_or("the token is malformed")?;
        let (id, hash) = (token.id().to_owned(), token.hash());
        let state = states.of(&person.name);
        self.lock().insert(id.clone(), Arc::new(SignedIn { person, hash, state }));
        Ok(PersonToken { secret, id, people: self.clone() })
    }

    /// The person with this token, as the caller that the provider's grants make of them now.
    pub(super) fn caller(
        &self,
        token: Token<'_>,
        provider: &IdentityProvider,
        now: SystemTime,
    ) -> Option<Arc<Caller>> {
        let found = self.lock().get(token.id()).cloned()?;
        found.hash.matches(token).then_some(())?;
        found.caller(provider, now).map(Arc::new)
    }

    /// Whether somebody of this name has the role in the tenant; none if nobody of the name is
    /// signed in here.
    pub(super) fn may(
        &self,
        name: &str,
        provider: &IdentityProvider,
        (role, tenant): (Role, &str),
        now: SystemTime,
    ) -> Option<bool> {
        let all: Vec<_> = self.lock().values().cloned().collect();
        let own: Vec<_> = all.iter().filter(|signed_in| signed_in.person.name == name).collect();
        let has_right = |signed_in: &&Arc<SignedIn>| {
            signed_in.caller(provider, now).is_some_and(|caller| caller.may(role, tenant))
        };
        (!own.is_empty()).then(|| own.iter().any(has_right))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<SignedIn>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SignedIn {
    fn caller(&self, provider: &IdentityProvider, now: SystemTime) -> Option<Caller> {
        let Person { name, groups, expires, source } = &self.person;
        if *expires <= now || *source != Source::of(provider) {
            return None;
        }
        let (role, tenants) = provider.rights(groups)?;
        let RateLimits { calls, misses } = provider.limits;
        let misses = misses.filter(|_| role == Role::Resolver);
        let (limits, state) = (RateLimits { calls, misses }, self.state.clone());
        Some(Caller { name: name.clone(), role, tenants, limits, state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_people_are_those_of_no_other_caller() {
        assert_eq!(person_name("Ann.Lee+1@x-y.org").unwrap(), "oidc:Ann.Lee+1@x-y.org");
        for wrong in ["", "a b", "a:b", "a/b", "ä", "a\u{202e}b", "a\n", &"a".repeat(121)] {
            assert_eq!(person_name(wrong), None, "{wrong:?}");
        }
    }
}
