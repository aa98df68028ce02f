//! The credentials file: the tokens and certificates of callers.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use serde::Deserialize;
use toml::value::Datetime;

use super::caller::{Caller, Tenants};
use super::caller_state::CallerStates;
use super::rate_limiter::RateLimits;
use super::role::Role;
use super::token::{HASH_PREFIX, Token, TokenHash};

/// The rule for callers' names.
const NAME_RULE: &str = "a caller's name has 1 to 63 characters: a-z, 0-9, '.', '_' and '-', \
    starts with a letter or a digit, and is not \"anonymous\"";

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
}

/// One `[[caller]]` of the file.
#[derive(Debug)]
pub struct Credential {
    /// The hash of the required token, if any.
    pub token: Option<TokenHash>,
    /// The name in the required certificate, if any: `uri:…` or `dns:…`.
    pub certificate: Option<String>,
    /// The caller.
    pub caller: Arc<Caller>,
    /// The expiry time, if any.
    pub expires: Option<SystemTime>,
}

/// An error in a credentials file, with the entry or line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CredentialsError(String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    caller: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    role: String,
    tenants: Vec<String>,
    token: Option<String>,
    certificate: Option<String>,
    #[serde(default)]
    rate: RateEntry,
    expires: Option<Datetime>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RateEntry {
    calls: Option<NonZeroU32>,
    misses: Option<NonZeroU32>,
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
        let mut callers: BTreeMap<String, Arc<Caller>> = BTreeMap::new();
        let mut credentials = Self::default();
        for (n, entry) in file.caller.into_iter().enumerate() {
            let label = format!("caller {} ({})", n + 1, shortened(&entry.name));
            let fault = |message: String| CredentialsError(format!("{label}: {message}"));
            let credential = entry.parse(default, states).map_err(fault)?;
            let name = credential.caller.name.clone();
            let known = callers.entry(name).or_insert_with(|| credential.caller.clone());
            if !known.has_same_rights(&credential.caller) {
                let message = "another entry with this name has another role, tenants or rate";
                return Err(fault(message.to_owned()));
            }
            let caller = known.clone();
            credentials.add(Credential { caller, ..credential }).map_err(fault)?;
        }

        Ok(credentials)
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

impl Credential {
    /// Whether the credential has expired.
    pub fn has_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Whether both have one token.
    fn has_token_of(&self, other: &Self) -> bool {
        let hash = |credential: &Self| credential.token.as_ref().map(ToString::to_string);
        hash(self) == hash(other)
    }

    fn sort_key(&self) -> (&str, Option<&str>, Option<&str>) {
        let id = self.token.as_ref().map(TokenHash::id);
        (&self.caller.name, id, self.certificate.as_deref())
    }
}

impl Entry {
    fn parse(self, default: RateLimits, states: &CallerStates) -> Result<Credential, String> {
        if !is_name(&self.name) {
            return Err(NAME_RULE.to_owned());
        }
        let token = self.token.map(|text| token_hash(&text)).transpose()?;
        let certificate = self.certificate.map(certificate_name).transpose()?;
        if token.is_none() && certificate.is_none() {
            return Err("write a token, a certificate, or both".to_owned());
        }
        let tenants = Tenants::parse(self.tenants).map_err(|rule| format!("tenants: {rule}"))?;
        let role = self.role.parse()?;
        // Registrars can probe identifiers by registering them, so only resolvers have a limit.
        let misses = default.misses.filter(|_| role == Role::Resolver);
        let caller = Caller {
            role,
            tenants,
            limits: RateLimits {
                calls: self.rate.calls.or(default.calls),
                misses: self.rate.misses.or(misses),
            },
            state: states.of(&self.name),
            name: self.name,
        };
        let expires = self.expires.map(|time| parse_time(&time)).transpose()?;
        Ok(Credential { token, certificate, caller: Arc::new(caller), expires })
    }
}

fn token_hash(text: &str) -> Result<TokenHash, String> {
    TokenHash::parse(text).ok_or_else(|| {
        "token: write sha256:<id>:<64 hexadecimal digits>, as `polynym token create` does"
            .to_owned()
    })
}

/// Checks the name in a certificate. Names are compared literally: wildcards would match nothing.
fn certificate_name(text: String) -> Result<String, String> {
    let name = text.strip_prefix("uri:").or_else(|| text.strip_prefix("dns:"));
    match name {
        Some(name) if !name.is_empty() && !name.contains('*') => Ok(text),
        _ => Err("certificate: write uri:<URI> or dns:<name>, a subject alternative name of the \
            certificate, without wildcards"
            .to_owned()),
    }
}

fn is_name(name: &str) -> bool {
    let is_alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    (1..=63).contains(&name.len())
        && name.bytes().next().is_some_and(is_alphanumeric)
        && name.bytes().all(|b| is_alphanumeric(b) || b"._-".contains(&b))
        && name != Caller::ANONYMOUS
}

fn parse_time(time: &Datetime) -> Result<SystemTime, String> {
    humantime::parse_rfc3339(&time.to_string())
        .map_err(|_| "expires: write a time in UTC, as in 2030-01-01T00:00:00Z".to_owned())
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
    }
}
