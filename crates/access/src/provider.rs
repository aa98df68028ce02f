//! The identity provider by which people sign in to the console, and the rights of its groups: the
//! table `[oidc]` of the credentials file.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::{Host, Url};

use super::caller::Tenants;
use super::credential::RateEntry;
use super::rate_limiter::RateLimits;
use super::role::Role;

/// The maximum number of grants.
const MAX_GRANTS: usize = 1_000;
/// The maximum bytes of a setting.
const MAX_BYTES: usize = 512;
/// The longest session: that of every caller of the console.
const MAX_SESSION: Duration = Duration::from_secs(8 * 60 * 60);
const MIN_SESSION: Duration = Duration::from_secs(60);
/// The values of `prompt`: how a provider treats somebody who has a session there.
const PROMPTS: [&str; 3] = ["login", "consent", "select_account"];

/// The provider, and what its groups may do.
#[derive(Debug)]
pub struct IdentityProvider {
    /// The provider's name for itself, a URL.
    pub issuer: String,
    /// The name of this server at the provider.
    pub client_id: String,
    /// The secret of this server at the provider.
    pub secret: ClientSecret,
    /// The provider's name for people.
    pub name: String,
    /// The claims from which people have their names and groups.
    pub claims: ClaimNames,
    /// The scopes to ask for beside `openid`.
    pub scopes: Vec<String>,
    /// How the provider treats somebody who has a session there; by default as it likes.
    pub prompt: Option<String>,
    /// The longest session; by default it ends with the provider's token.
    pub session: Option<Duration>,
    /// The limits of each person.
    pub(super) limits: RateLimits,
    pub(super) grants: Vec<Grant>,
}

/// The claims from which people have their names and groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimNames {
    /// The claim with the name in logs and histories.
    pub name: String,
    /// The claim with the groups.
    pub groups: String,
}

/// The secret of this server at the provider.
#[derive(Debug)]
pub enum ClientSecret {
    /// The provider asks for none.
    None,
    /// The secret.
    Text(SecretString),
    /// The file that has it.
    File(PathBuf),
}

/// The rights of a group: one `[[oidc.grant]]`.
#[derive(Debug)]
pub struct Grant {
    /// The group, as the provider names it.
    pub group: String,
    /// The role of its members.
    pub role: Role,
    /// The tenants to which the role applies.
    pub tenants: Tenants,
}

/// The table as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProviderEntry {
    issuer: String,
    client_id: String,
    client_secret: Option<SecretString>,
    client_secret_file: Option<PathBuf>,
    name: Option<String>,
    name_claim: Option<String>,
    groups_claim: Option<String>,
    scopes: Option<Vec<String>>,
    prompt: Option<String>,
    session: Option<String>,
    #[serde(default)]
    rate: RateEntry,
    #[serde(default)]
    grant: Vec<GrantEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantEntry {
    group: String,
    role: String,
    tenants: Vec<String>,
}

impl IdentityProvider {
    /// The rights of each group.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// Of these groups, those that have rights.
    pub fn known<'g>(&self, groups: impl IntoIterator<Item = &'g str>) -> BTreeSet<String> {
        let is_known = |group: &&str| self.grants.iter().any(|grant| grant.group == *group);
        groups.into_iter().filter(is_known).map(str::to_owned).collect()
    }

    /// The role of a member of these groups, which is the highest one, and the tenants of all
    /// grants that give it. None without a grant.
    pub fn rights(&self, groups: &BTreeSet<String>) -> Option<(Role, Tenants)> {
        let own = || self.grants.iter().filter(|grant| groups.contains(&grant.group));
        let role = own().map(|grant| grant.role).max()?;
        let highest = own().filter(|grant| grant.role == role);
        let patterns: BTreeSet<_> =
            highest.flat_map(|grant| grant.tenants.patterns()).cloned().collect();
        Some((role, Tenants::parse(patterns.into_iter().collect()).ok()?))
    }

    /// Whether a grant gives somebody at least this role in the tenant.
    pub(super) fn gives(&self, role: Role, tenant: &str) -> bool {
        self.grants.iter().any(|grant| grant.role >= role && grant.tenants.contains(tenant))
    }
}

impl ProviderEntry {
    /// Checks the table. The limits of people are `default`, where it has no others.
    ///
    /// # Errors
    /// All its faults.
    pub(super) fn parse(self, default: RateLimits) -> Result<IdentityProvider, Vec<String>> {
        let mut faults = Vec::new();
        let mut check = |setting: &str, outcome: Result<(), String>| {
            faults.extend(outcome.err().map(|fault| format!("oidc: {setting}: {fault}")));
        };
        let host = issuer_host(&self.issuer);
        check("issuer", host.as_ref().map(drop).map_err(Clone::clone));
        check("client_id", bounded(&self.client_id));
        check("client_secret", secret_fault(&self));
        let name = self.name.unwrap_or_else(|| host.unwrap_or_default());
        check("name", bounded(&name));
        let claims = ClaimNames {
            name: self.name_claim.unwrap_or_else(|| "email".to_owned()),
            groups: self.groups_claim.unwrap_or_else(|| "groups".to_owned()),
        };
        check("name_claim", bounded(&claims.name));
        check("groups_claim", bounded(&claims.groups));
        let scopes = self.scopes.unwrap_or_else(|| vec!["email".to_owned(), "profile".to_owned()]);
        check("scopes", scopes_fault(&scopes));
        check("prompt", prompt_fault(self.prompt.as_deref()));
        let session = self.session.as_deref().map(session).transpose();
        check("session", session.as_ref().map(drop).map_err(Clone::clone));
        let grants = grants(self.grant).unwrap_or_else(|wrong| {
            faults.extend(wrong);
            Vec::new()
        });
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(IdentityProvider {
            issuer: self.issuer,
            client_id: self.client_id,
            secret: match (self.client_secret, self.client_secret_file) {
                (Some(text), _) => ClientSecret::Text(text),
                (None, Some(path)) => ClientSecret::File(path),
                (None, None) => ClientSecret::None,
            },
            name,
            claims,
            scopes,
            prompt: self.prompt,
            session: session.unwrap_or_default(),
            limits: RateLimits {
                calls: self.rate.calls.or(default.calls),
                misses: self.rate.misses.or(default.misses),
            },
            grants,
        })
    }
}

/// Checks all grants. Returns all faults otherwise.
fn grants(entries: Vec<GrantEntry>) -> Result<Vec<Grant>, Vec<String>> {
    if entries.is_empty() {
        return Err(vec!["oidc: write what a group may do as [[oidc.grant]]".to_owned()]);
    }
    if entries.len() > MAX_GRANTS {
        return Err(vec![format!("oidc: at most {MAX_GRANTS} grants")]);
    }
    let mut faults = Vec::new();
    let mut parsed = Vec::new();
    for (n, entry) in entries.into_iter().enumerate() {
        match entry.parse() {
            Ok(grant) => parsed.push(grant),
            Err(wrong) => faults
                .extend(wrong.into_iter().map(|fault| format!("oidc.grant {}: {fault}", n + 1))),
        }
    }
    if faults.is_empty() { Ok(parsed) } else { Err(faults) }
}

impl GrantEntry {
    fn parse(self) -> Result<Grant, Vec<String>> {
        let role = match self.role.parse() {
            Ok(Role::Monitor) => Err("role: a monitor opens no console".to_owned()),
            Ok(role) => Ok(role),
            Err(fault) => Err(format!("role: {fault}")),
        };
        let tenants = Tenants::parse(self.tenants).map_err(|rule| format!("tenants: {rule}"));
        let group = bounded(&self.group).map_err(|rule| format!("group: {rule}"));
        match (group, role, tenants) {
            (Ok(()), Ok(role), Ok(tenants)) => Ok(Grant { group: self.group, role, tenants }),
            (group, role, tenants) => {
                Err([group.err(), role.err(), tenants.err()].into_iter().flatten().collect())
            }
        }
    }
}

/// Whether a URL may be one of a provider: what it says cannot be changed on the way.
pub fn is_safe_url(url: &Url) -> bool {
    match url.scheme() {
        "https" => url.host().is_some(),
        "http" => is_loopback(url),
        _ => false,
    }
}

/// Whether a URL is of this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// The host of an issuer.
fn issuer_host(issuer: &str) -> Result<String, String> {
    let rule = || "write the provider's URL as it does, with https://".to_owned();
    bounded(issuer)?;
    let url = Url::parse(issuer).map_err(|_| rule())?;
    let is_plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    if !is_safe_url(&url) || !is_plain {
        return Err(rule());
    }
    url.host_str().map(str::to_owned).ok_or_else(rule)
}

fn bounded(text: &str) -> Result<(), String> {
    let is_bounded = (1..=MAX_BYTES).contains(&text.len()) && !text.chars().any(char::is_control);
    let rule = || format!("write 1 to {MAX_BYTES} bytes without control characters");
    if is_bounded { Ok(()) } else { Err(rule()) }
}

fn secret_fault(entry: &ProviderEntry) -> Result<(), String> {
    match (&entry.client_secret, &entry.client_secret_file) {
        (Some(_), Some(_)) => Err("write it, or client_secret_file, not both".to_owned()),
        (Some(secret), None) => bounded(secret.expose_secret()),
        (None, Some(path)) if !path.is_absolute() => {
            Err("client_secret_file: write an absolute path".to_owned())
        }
        _ => Ok(()),
    }
}

fn scopes_fault(scopes: &[String]) -> Result<(), String> {
    // RFC 6749, section 3.3.
    let is_char = |b: u8| b.is_ascii_graphic() && b != b'"' && b != b'\\';
    let is_scope = |scope: &String| bounded(scope).is_ok() && scope.bytes().all(is_char);
    match scopes.len() <= 20 && scopes.iter().all(is_scope) {
        true => Ok(()),
        false => Err("write at most 20 words, such as [\"email\", \"profile\"]".to_owned()),
    }
}

fn prompt_fault(prompt: Option<&str>) -> Result<(), String> {
    match prompt.is_none_or(|prompt| PROMPTS.contains(&prompt)) {
        true => Ok(()),
        false => Err(format!("write {}, or leave it out", PROMPTS.join(", "))),
    }
}

fn session(text: &str) -> Result<Duration, String> {
    let session = humantime::parse_duration(text).ok();
    let bounded = session.filter(|session| (MIN_SESSION..=MAX_SESSION).contains(session));
    bounded.ok_or_else(|| "write a time from 1m to 8h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: &str =
        "issuer = \"https://sso.example/realms/staff\"\nclient_id = \"polynym\"\n";

    fn parse(text: &str) -> Result<IdentityProvider, String> {
        let entry: ProviderEntry = toml::from_str(text).map_err(|error| error.to_string())?;
        entry.parse(RateLimits::default()).map_err(|faults| faults.join("\n"))
    }

    fn grant(group: &str, role: &str, tenants: &str) -> String {
        format!("[[grant]]\ngroup = \"{group}\"\nrole = \"{role}\"\ntenants = [{tenants}]\n")
    }

    #[test]
    fn a_member_of_several_groups_has_the_highest_role() {
        let grants = [
            grant("support", "viewer", "\"*\""),
            grant("eu", "admin", "\"eu-*\""),
            grant("at", "admin", "\"at\", \"eu-*\""),
        ];
        let provider = parse(&format!("{SETTINGS}{}", grants.concat())).unwrap();
        assert_eq!(provider.name, "sso.example");
        let rights = |groups: &[&str]| provider.rights(&provider.known(groups.iter().copied()));
        assert_eq!(rights(&["staff"]), None);
        let (role, tenants) = rights(&["support", "staff"]).unwrap();
        assert_eq!((role, tenants.to_string().as_str()), (Role::Viewer, "*"));
        let (role, tenants) = rights(&["support", "at", "eu"]).unwrap();
        assert_eq!((role, tenants.to_string().as_str()), (Role::Admin, "at,eu-*"));
        assert!(provider.gives(Role::Registrar, "eu-1") && provider.gives(Role::Viewer, "x"));
        assert!(!provider.gives(Role::Registrar, "x"));
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let wrong = format!(
            "issuer = \"http://sso.example\"\nclient_id = \"\"\nclient_secret = \"a\"\n\
             client_secret_file = \"/b\"\nprompt = \"none\"\nsession = \"9h\"\n\
             scopes = [\"a b\"]\n{}",
            grant("", "monitor", "\"A\"")
        );
        let faults = parse(&wrong).unwrap_err();
        for part in [
            "issuer: write the provider's URL",
            "client_id: write 1 to 512",
            "not both",
            "prompt: write login, consent",
            "session: write a time from 1m to 8h",
            "scopes: write at most 20",
            "grant 1: group:",
            "grant 1: role: a monitor",
            "grant 1: tenants:",
        ] {
            assert!(faults.contains(part), "{part}: {faults}");
        }
        assert!(parse(SETTINGS).unwrap_err().contains("[[oidc.grant]]"));
    }

    #[test]
    fn only_what_cannot_be_changed_on_the_way_is_a_provider() {
        let is_safe = |text: &str| is_safe_url(&Url::parse(text).unwrap());
        for good in
            ["https://sso.example", "http://127.0.0.1:1/a", "http://[::1]/", "http://localhost"]
        {
            assert!(is_safe(good), "{good}");
        }
        for wrong in [
            "http://sso.example",
            "http://localhost.example",
            "http://127.0.0.1.example",
            "ftp://a",
            "javascript:1",
        ] {
            assert!(!is_safe(wrong), "{wrong}");
        }
        for wrong in ["https://a/?b", "https://a/#b", "https://u@a/", "https:"] {
            assert!(issuer_host(wrong).is_err(), "{wrong}");
        }
    }
}
