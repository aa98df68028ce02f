//! The credentials file: the tokens and certificates of callers.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use serde::Deserialize;

use super::caller::Caller;
use super::caller_state::CallerStates;
use super::credential::{Credential, Entry};
use super::provider::{IdentityProvider, ProviderEntry};
use super::rate_limiter::RateLimits;
use super::token::{HASH_PREFIX, Token};

/// The maximum number of faults that are named at once.
const MAX_FAULTS: usize = 20;

/// The credentials of all callers.
#[derive(Debug, Default)]
pub struct Credentials {
    all: Vec<Arc<Credential>>,
    /// Those with a token, by the id of the token.
    tokens: HashMap<String, Arc<Credential>>,
    /// Those with a certificate, by the name in the certificate.
    certificates: HashMap<String, Vec<Arc<Credential>>>,
    /// Since when the tokens count that the first file did not have, by their ids.
    since: HashMap<String, Instant>,
    /// The provider by which people sign in, if any.
    provider: Option<Arc<IdentityProvider>>,
}

/// The errors in a credentials file, each on a line with its entry or line of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CredentialsError(String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    caller: Vec<Entry>,
    oidc: Option<ProviderEntry>,
}

impl Credentials {
    /// Parses a credentials file. Callers without limits of their own get `default`.
    ///
    /// # Errors
    /// The text is not TOML of this form, or an entry is invalid or contradicts another one. The
    /// error does not repeat hashes.
    pub fn parse(
        text: &str,
        default: RateLimits,
        states: &CallerStates,
    ) -> Result<Self, CredentialsError> {
        let file: File = toml::from_str(text).map_err(|error| syntax(text, &error))?;
        let mut callers = BTreeMap::new();
        let mut credentials = Self::default();
        let mut faults = Vec::new();
        for (n, entry) in file.caller.into_iter().enumerate() {
            let label = format!("caller {} ({})", n + 1, shortened(&entry.name));
            let credential = entry.parse(default, states);
            let added = credential.and_then(|new| credentials.add_of(&mut callers, new));
            faults.extend(added.err().map(|message| format!("{label}: {message}")));
        }
        match file.oidc.map(|entry| entry.parse(default)).transpose() {
            Ok(provider) => credentials.provider = provider.map(Arc::new),
            Err(wrong) => faults.extend(wrong),
        }
        faults.truncate(MAX_FAULTS);
        if faults.is_empty() { Ok(credentials) } else { Err(CredentialsError(faults.join("\n"))) }
    }

    /// Adds a credential of a caller, who is the same in all of them.
    fn add_of(
        &mut self,
        callers: &mut BTreeMap<String, Arc<Caller>>,
        credential: Credential,
    ) -> Result<(), String> {
        let name = credential.caller.name.clone();
        let known = callers.entry(name).or_insert_with(|| credential.caller.clone());
        if !known.has_same_rights(&credential.caller) {
            return Err("another entry with this name has another role, tenants or rate".to_owned());
        }
        let caller = known.clone();
        self.add(Credential { caller, ..credential })
    }

    /// The provider by which people sign in, if any.
    pub fn provider(&self) -> Option<&Arc<IdentityProvider>> {
        self.provider.as_ref()
    }

    fn add(&mut self, credential: Credential) -> Result<(), String> {
        let shared = Arc::new(credential);
        self.all.push(shared.clone());
        if let Some(name) = &shared.certificate {
            let holders = self.certificates.entry(name.clone()).or_default();
            if holders.iter().any(|other| other.caller.name != shared.caller.name) {
                return Err("another caller has this certificate".to_owned());
            }
            holders.push(shared.clone());
        }
        if let Some(token) = &shared.token
            && self.tokens.insert(token.id().to_owned(), shared.clone()).is_some()
        {
            return Err("another entry has a token of this id".to_owned());
        }
        Ok(())
    }

    /// Notes which tokens the file did not have `before`: they count from now on.
    pub(crate) fn follow(&mut self, before: &Self) {
        let now = Instant::now();
        for (id, credential) in &self.tokens {
            let known = before.tokens.get(id);
            let is_known = known.is_some_and(|known| known.has_token_of(credential));
            let since = if is_known { before.since.get(id).copied() } else { Some(now) };
            if let Some(since) = since {
                self.since.insert(id.clone(), since);
            }
        }
    }

    /// Whether a token has been in the file all the time since then.
    pub(crate) fn has_known(&self, token: Token<'_>, began: Instant) -> bool {
        self.since.get(token.id()).is_none_or(|since| *since <= began)
    }

    /// All credentials, in the order of their callers' names.
    pub fn list(&self) -> Vec<&Credential> {
        let mut all: Vec<_> = self.all.iter().map(AsRef::as_ref).collect();
        all.sort_by(|one, other| one.sort_key().cmp(&other.sort_key()));
        all
    }

    /// The caller with this name, if one of its credentials has not expired.
    pub fn caller_named(&self, name: &str, now: SystemTime) -> Option<&Arc<Caller>> {
        let is_valid = |credential: &&Arc<Credential>| {
            credential.caller.name == name && !credential.has_expired(now)
        };
        self.all.iter().find(is_valid).map(|credential| &credential.caller)
    }

    /// The caller with this token, a client certificate of these names, or both. None if the token
    /// is unknown, a credential has expired or requires both and one is missing, or they name
    /// several callers.
    pub fn caller(
        &self,
        token: Option<Token<'_>>,
        names: &[String],
        now: SystemTime,
    ) -> Option<&Arc<Caller>> {
        let by_token = match token {
            Some(token) => Some(self.by_token(token, names, now)?),
            None => None,
        };
        let by_certificate: Vec<_> = names
            .iter()
            .filter_map(|name| self.certificates.get(name))
            .flatten()
            .filter(|credential| !credential.has_expired(now))
            .collect();
        let tokenless = by_certificate.iter().find(|credential| credential.token.is_none());
        let caller = by_token.or(tokenless.map(|credential| &credential.caller))?;
        let is_unique = by_certificate.iter().all(|other| other.caller.name == caller.name);
        is_unique.then_some(caller)
    }

    fn by_token(
        &self,
        token: Token<'_>,
        names: &[String],
        now: SystemTime,
    ) -> Option<&Arc<Caller>> {
        let credential = self.with_token(token, names)?;
        (!credential.has_expired(now)).then_some(&credential.caller)
    }

    /// The credential of this token and a certificate of these names, even if it has expired.
    fn with_token(&self, token: Token<'_>, names: &[String]) -> Option<&Credential> {
        let credential: &Credential = self.tokens.get(token.id())?;
        let is_valid = credential.token.as_ref().is_some_and(|hash| hash.matches(token))
            && credential.certificate.as_ref().is_none_or(|name| names.contains(name));
        is_valid.then_some(credential)
    }

    /// The name of the caller whose token this is, if the token has expired.
    pub fn expired_caller(
        &self,
        token: Token<'_>,
        names: &[String],
        now: SystemTime,
    ) -> Option<&str> {
        let credential = self.with_token(token, names)?;
        credential.has_expired(now).then_some(&credential.caller.name)
    }
}

/// The start of an unchecked name, without control characters.
fn shortened(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(63).collect()
}

/// The parser's message without its excerpt of the file.
fn syntax(text: &str, error: &toml::de::Error) -> CredentialsError {
    let start = error.span().map_or(0, |span| span.start).min(text.len());
    let before = text.as_bytes().get(..start).unwrap_or_default();
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    CredentialsError(format!("line {line}: {}", without_values(error.message())))
}

/// A parser's message without quoted values, which may be hashes.
fn without_values(message: &str) -> String {
    match (message.find('"'), message.rfind('"')) {
        (Some(start), Some(end)) if start < end => {
            format!("{}\"…\"{}", &message[..start], &message[end + 1..])
        }
        _ if message.contains(HASH_PREFIX) => "it cannot be read".to_owned(),
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::Role;
    use crate::generate_token as generate;

    fn entry(name: &str, role: &str, tenants: &str, token: Token<'_>, more: &str) -> String {
        format!(
            "[[caller]]\nname = \"{name}\"\nrole = \"{role}\"\ntenants = {tenants}\n\
             token = \"{}\"\n{more}\n",
            token.hash()
        )
    }

    fn parse(text: &str) -> Result<Credentials, CredentialsError> {
        Credentials::parse(text, RateLimits::default(), &CallerStates::default())
    }

    fn fault(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn tokens_authenticate_their_callers_until_they_expire() {
        let texts: Vec<_> = (0..3).map(|_| generate().unwrap()).collect();
        let tokens: Vec<_> =
            texts.iter().map(|text| Token::parse(text.expose_secret()).unwrap()).collect();
        let text = [
            entry("billing", "resolver", "[\"default\", \"eu-*\"]", tokens[0], ""),
            entry(
                "billing",
                "resolver",
                "[\"default\", \"eu-*\"]",
                tokens[1],
                "expires = 2030-01-01T00:00:00Z",
            ),
        ];
        let credentials = parse(&text.concat()).unwrap();
        let early = SystemTime::UNIX_EPOCH;
        let late = humantime::parse_rfc3339("2030-01-01T00:00:00Z").unwrap();
        let caller = credentials.caller(Some(tokens[0]), &[], late).unwrap();
        assert_eq!((caller.name.as_str(), caller.role), ("billing", Role::Resolver));
        assert!(Arc::ptr_eq(caller, credentials.caller(Some(tokens[1]), &[], early).unwrap()));
        assert!(credentials.caller(Some(tokens[1]), &[], late).is_none(), "expired");
        assert!(credentials.caller(Some(tokens[2]), &[], early).is_none(), "unknown");
        assert_eq!(credentials.caller_named("billing", late).unwrap().role, Role::Resolver);
        assert!(credentials.caller_named("bill", late).is_none());
    }

    #[test]
    fn entries_are_checked() {
        let texts = [generate().unwrap(), generate().unwrap()];
        let [token, another] =
            texts.each_ref().map(|text| Token::parse(text.expose_secret()).unwrap());
        let good = entry("a", "admin", "[\"*\"]", token, "");
        let other = entry("a", "resolver", "[\"*\"]", another, "");
        let quoted_hash = format!("\"{}\"", token.hash());
        let certified = |more: &str| good.replace("token = ", "").replace(&quoted_hash, more);
        let invalid = [
            (certified(""), "write a token"),
            (certified("certificate = \"dns:*.corp\""), "wildcards"),
            (certified("certificate = \"cn:corp\""), "uri:<URI>"),
            (entry("a", "admin", "[\"*\"]", token, "rate = { calls = 0 }"), "nonzero"),
            (entry("anonymous", "admin", "[\"*\"]", token, ""), "name"),
            (entry("A", "admin", "[\"*\"]", token, ""), "name"),
            (entry("a", "root", "[\"*\"]", token, ""), "resolver, viewer, registrar or admin"),
            (entry("a", "admin", "[]", token, ""), "name a tenant"),
            (entry("a", "admin", "[\"*\"]", token, "expires = 2030-01-01"), "UTC"),
            (entry("a", "admin", "[\"*\"]", token, "rol = 1"), "unknown field"),
            (good.replace("sha256:", "md5:"), "sha256:<id>"),
            (format!("{good}{good}"), "of this id"),
            (format!("{good}{other}"), "another role"),
            ("[[caller]".to_owned(), "line 1"),
            ("[caller]\nname = 1\n".to_owned(), "line 1"),
        ];
        for (text, part) in invalid {
            let message = fault(&text);
            assert!(message.contains(part), "{message}");
            assert!(!message.contains(&token.hash().to_string()[20..]), "{message}");
        }
        assert!(parse("").unwrap().list().is_empty());
        let both = format!(
            "{}{}",
            entry("A", "admin", "[\"*\"]", token, ""),
            "[oidc]\n\
            issuer = \"http://a.b\"\nclient_id = \"a\"\nclient_secret = \"hidden\"\n"
        );
        let message = fault(&both);
        assert!(message.contains("caller 1 (A)") && message.contains("oidc: issuer"), "{message}");
        let secret = fault("[oidc]\nclient_secret = [\"hidden\"]\n");
        assert!(!message.contains("hidden") && !secret.contains("hidden"), "{secret}");
    }
}
