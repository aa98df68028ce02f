//! The credentials file: which tokens belong to which callers.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use serde::Deserialize;
use toml::value::Datetime;

use super::caller::{Caller, Tenants};
use super::token::{Token, TokenHash};

/// The rule of callers' names.
const NAME_RULE: &str = "a caller's name has 1 to 63 characters: a-z, 0-9, '.', '_' and '-', \
    starts with a letter or a digit, and is not \"anonymous\"";

/// The credentials of all callers.
#[derive(Debug, Default)]
pub struct Credentials {
    /// By the token's id.
    tokens: HashMap<String, Credential>,
}

/// One `[[caller]]` of the file.
#[derive(Debug)]
pub struct Credential {
    /// The hash of the caller's token.
    pub hash: TokenHash,
    /// The caller.
    pub caller: Arc<Caller>,
    /// The time at which the token expires, if it does.
    pub expires: Option<SystemTime>,
}

/// A fault of a credentials file: the entry, and what is wrong with it.
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
    token: String,
    expires: Option<Datetime>,
}

impl Credentials {
    /// Reads a credentials file.
    ///
    /// # Errors
    /// The text is not TOML of this form, or an entry is wrong or contradicts another one. The
    /// error repeats no hash.
    pub fn parse(text: &str) -> Result<Self, CredentialsError> {
        let file: File = toml::from_str(text).map_err(|error| syntax(text, &error))?;
        let mut callers: BTreeMap<String, Arc<Caller>> = BTreeMap::new();
        let mut tokens = HashMap::new();
        for (n, entry) in file.caller.into_iter().enumerate() {
            let place = format!("caller {} ({})", n + 1, shortened(&entry.name));
            let fault = |message: String| CredentialsError(format!("{place}: {message}"));
            let credential = entry.read().map_err(fault)?;
            let name = credential.caller.name.clone();
            let known = callers.entry(name).or_insert_with(|| credential.caller.clone());
            if **known != *credential.caller {
                let message = "another entry of this name has another role or other tenants";
                return Err(fault(message.to_owned()));
            }
            let credential = Credential { caller: known.clone(), ..credential };
            let id = credential.hash.id().to_owned();
            if tokens.insert(id, credential).is_some() {
                return Err(fault("another entry has a token of this id".to_owned()));
            }
        }

        Ok(Self { tokens })
    }

    /// All credentials, by their callers' names.
    pub fn list(&self) -> Vec<&Credential> {
        let mut all: Vec<_> = self.tokens.values().collect();
        all.sort_by_key(|credential| (credential.caller.name.clone(), credential.hash.id()));
        all
    }

    /// The caller that a token belongs to; none where nobody has it, or it has expired.
    pub fn caller(&self, token: &Token, now: SystemTime) -> Option<&Arc<Caller>> {
        let credential = self.tokens.get(token.id())?;
        let is_valid = credential.hash.matches(token) && !credential.has_expired(now);
        is_valid.then_some(&credential.caller)
    }
}

impl Credential {
    /// Whether the token has expired.
    pub fn has_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

impl Entry {
    fn read(self) -> Result<Credential, String> {
        if !is_name(&self.name) {
            return Err(NAME_RULE.to_owned());
        }
        let form = "token: write sha256:<id>:<64 hexadecimal digits>, as `polynym token create` \
            does";
        let hash = TokenHash::parse(&self.token).ok_or(form)?;
        let tenants = Tenants::parse(self.tenants).map_err(|rule| format!("tenants: {rule}"))?;
        let caller = Caller { name: self.name, role: self.role.parse()?, tenants };
        let expires = self.expires.map(|time| instant(&time)).transpose()?;
        Ok(Credential { hash, caller: Arc::new(caller), expires })
    }
}

fn is_name(name: &str) -> bool {
    let is_alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    (1..=63).contains(&name.len())
        && name.bytes().next().is_some_and(is_alphanumeric)
        && name.bytes().all(|b| is_alphanumeric(b) || b"._-".contains(&b))
        && name != Caller::ANONYMOUS
}

fn instant(time: &Datetime) -> Result<SystemTime, String> {
    humantime::parse_rfc3339(&time.to_string())
        .map_err(|_| "expires: write a time in UTC, as in 2030-01-01T00:00:00Z".to_owned())
}

/// The start of a name that may be anything.
fn shortened(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(63).collect()
}

/// The parser's message without the line of the file that it shows.
fn syntax(text: &str, error: &toml::de::Error) -> CredentialsError {
    let start = error.span().map_or(0, |span| span.start).min(text.len());
    let before = text.as_bytes().get(..start).unwrap_or_default();
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    CredentialsError(format!("line {line}: {}", error.message()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Role;

    fn entry(name: &str, role: &str, tenants: &str, token: &Token, more: &str) -> String {
        format!(
            "[[caller]]\nname = \"{name}\"\nrole = \"{role}\"\ntenants = {tenants}\n\
             token = \"{}\"\n{more}\n",
            token.hash()
        )
    }

    fn fault(text: &str) -> String {
        Credentials::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn tokens_lead_to_their_callers_until_they_expire() {
        let tokens: Vec<_> = (0..3).map(|_| Token::generate().unwrap()).collect();
        let text = [
            entry("billing", "resolver", "[\"default\", \"eu-*\"]", &tokens[0], ""),
            entry(
                "billing",
                "resolver",
                "[\"default\", \"eu-*\"]",
                &tokens[1],
                "expires = 2030-01-01T00:00:00Z",
            ),
        ];
        let credentials = Credentials::parse(&text.concat()).unwrap();
        let early = SystemTime::UNIX_EPOCH;
        let late = humantime::parse_rfc3339("2030-01-01T00:00:00Z").unwrap();
        let caller = credentials.caller(&tokens[0], late).unwrap();
        assert_eq!((caller.name.as_str(), caller.role), ("billing", Role::Resolver));
        assert!(Arc::ptr_eq(caller, credentials.caller(&tokens[1], early).unwrap()));
        assert!(credentials.caller(&tokens[1], late).is_none(), "expired");
        assert!(credentials.caller(&tokens[2], early).is_none(), "unknown");
    }

    #[test]
    fn entries_are_checked() {
        let token = Token::generate().unwrap();
        let good = entry("a", "admin", "[\"*\"]", &token, "");
        let other = entry("a", "resolver", "[\"*\"]", &Token::generate().unwrap(), "");
        let wrong = [
            (entry("anonymous", "admin", "[\"*\"]", &token, ""), "name"),
            (entry("A", "admin", "[\"*\"]", &token, ""), "name"),
            (entry("a", "root", "[\"*\"]", &token, ""), "resolver, registrar or admin"),
            (entry("a", "admin", "[]", &token, ""), "name a tenant"),
            (entry("a", "admin", "[\"*\"]", &token, "expires = 2030-01-01"), "UTC"),
            (entry("a", "admin", "[\"*\"]", &token, "rol = 1"), "unknown field"),
            (good.replace("sha256:", "md5:"), "sha256:<id>"),
            (format!("{good}{good}"), "of this id"),
            (format!("{good}{other}"), "another role"),
            ("[[caller]".to_owned(), "line 1"),
            ("[caller]\nname = 1\n".to_owned(), "line 1"),
        ];
        for (text, part) in wrong {
            let message = fault(&text);
            assert!(message.contains(part), "{message}");
            assert!(!message.contains(&token.hash().to_string()[20..]), "{message}");
        }
        assert!(Credentials::parse("").unwrap().list().is_empty());
    }
}
