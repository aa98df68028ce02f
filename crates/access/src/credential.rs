//! One credential: an entry of the credentials file.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::SystemTime;

use serde::Deserialize;
use toml::value::Datetime;

use super::caller::{Caller, Tenants};
use super::caller_state::CallerStates;
use super::rate_limiter::RateLimits;
use super::role::Role;
use super::token::TokenHash;

/// The rule for callers' names.
const NAME_RULE: &str = "a caller's name has 1 to 63 characters: a-z, 0-9, '.', '_' and '-', \
    starts with a letter or a digit, and is not \"anonymous\"";

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

/// One `[[caller]]` as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) name: String,
    role: String,
    tenants: Vec<String>,
    token: Option<String>,
    certificate: Option<String>,
    #[serde(default)]
    rate: RateEntry,
    expires: Option<Datetime>,
}

/// The limits of rates as written.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RateEntry {
    pub(super) calls: Option<NonZeroU32>,
    pub(super) misses: Option<NonZeroU32>,
}

impl Credential {
    /// Whether the credential has expired.
    pub fn has_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Whether both have one token.
    pub(super) fn has_token_of(&self, other: &Self) -> bool {
        let hash = |credential: &Self| credential.token.as_ref().map(ToString::to_string);
        hash(self) == hash(other)
    }

    pub(super) fn sort_key(&self) -> (&str, Option<&str>, Option<&str>) {
        let id = self.token.as_ref().map(TokenHash::id);
        (&self.caller.name, id, self.certificate.as_deref())
    }
}

impl Entry {
    /// Checks the entry.
    pub(super) fn parse(
        self,
        default: RateLimits,
        states: &CallerStates,
    ) -> Result<Credential, String> {
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
