//! Profile pages of well-known services. The several addresses of a profile are one identity.
//!
//! This table is part of versions 2 and 3 of the rules: a new service needs a new version.

use url::Url;

/// A service with known profile pages.
pub struct Service {
    /// The canonical host of profiles.
    pub host: &'static str,
    /// Other hosts of the same pages.
    aliases: &'static [&'static str],
    /// Whether countries have hosts, such as `de.linkedin.com`.
    has_country_hosts: bool,
    /// The path before a name.
    pub prefix: &'static str,
    /// Whether dots in a name are significant.
    has_significant_dots: bool,
}

/// The names of all these services are case-insensitive. Sources, read in November 2026:
///
/// - LinkedIn, help page 87 "Customize your public profile URL": the part that a member chooses
///   "is case insensitive".
/// - GitHub, documentation "Username considerations for external authentication": a login is
///   unique regardless of case.
/// - Facebook, help page 105399436216001 on user names: dots and capitals are not significant.
/// - X, help page "Using X": names are case-insensitive; `twitter.com` redirects to `x.com`.
/// - Instagram, help page 583107688369069 on user names: names are stored in lower case.
const SERVICES: [Service; 5] = [
    Service {
        host: "www.linkedin.com",
        aliases: &["linkedin.com", "m.linkedin.com"],
        has_country_hosts: true,
        prefix: "/in/",
        has_significant_dots: true,
    },
    Service {
        host: "github.com",
        aliases: &["www.github.com"],
        has_country_hosts: false,
        prefix: "/",
        has_significant_dots: true,
    },
    Service {
        host: "www.facebook.com",
        aliases: &[
            "facebook.com",
            "m.facebook.com",
            "mbasic.facebook.com",
            "touch.facebook.com",
            "web.facebook.com",
            "fb.com",
            "www.fb.com",
        ],
        has_country_hosts: false,
        prefix: "/",
        has_significant_dots: false,
    },
    Service {
        host: "x.com",
        aliases: &[
            "www.x.com",
            "mobile.x.com",
            "twitter.com",
            "www.twitter.com",
            "mobile.twitter.com",
            "m.twitter.com",
        ],
        has_country_hosts: false,
        prefix: "/",
        has_significant_dots: true,
    },
    Service {
        host: "www.instagram.com",
        aliases: &["instagram.com", "m.instagram.com"],
        has_country_hosts: false,
        prefix: "/",
        has_significant_dots: true,
    },
];

/// Facebook's page of a profile without a name.
pub const NUMBERED_PROFILE: &str = "/profile.php";

/// The canonical address of the profile at a URL; none if it is no profile of a known service.
/// `host` and `path` are those of `url`, in canonical form.
pub fn address(url: &Url, host: &str, path: &str) -> Option<String> {
    let service = service(host)?;
    let (prefix, typed_name) = path.split_at_checked(service.prefix.len())?;
    let is_name = !typed_name.is_empty() && !typed_name.contains('/');
    if !prefix.eq_ignore_ascii_case(service.prefix) || !is_name {
        return None;
    }

    let name = match path.eq_ignore_ascii_case(NUMBERED_PROFILE) {
        true if !service.has_significant_dots => profile_number(url)?,
        _ => service.canonical_name(typed_name),
    };
    Some(service.address(&name))
}

/// The start of the canonical addresses of the profiles whose addresses start so, by version 2.
pub fn start(host: &str, path: &str) -> Option<String> {
    let service = service(host)?;
    let (prefix, name) = path.split_at_checked(service.prefix.len())?;
    let is_start = prefix.eq_ignore_ascii_case(service.prefix) && !name.contains('/');
    is_start.then(|| service.address(&service.canonical_name(name)))
}

/// The service with this host.
pub fn service(host: &str) -> Option<&'static Service> {
    SERVICES.iter().find(|service| service.has_host(host))
}

impl Service {
    fn has_host(&self, host: &str) -> bool {
        host == self.host
            || self.aliases.contains(&host)
            || self.has_country_hosts && self.is_country_host(host).unwrap_or(false)
    }

    fn is_country_host(&self, host: &str) -> Option<bool> {
        let domain = self.host.strip_prefix("www")?;
        let country = host.strip_suffix(domain)?;
        Some(country.len() == 2 && country.bytes().all(|b| b.is_ascii_lowercase()))
    }

    /// The address of the profile with a canonical name.
    pub fn address(&self, name: &str) -> String {
        format!("https://{}{}{name}", self.host, self.prefix)
    }

    /// A name in lower case, except escapes, and without insignificant dots.
    pub fn canonical_name(&self, typed: &str) -> String {
        let mut escape = 0;
        let lower = |c: char| {
            escape = if c == '%' { 3 } else { escape };
            let is_escaped = escape > 0;
            escape = i32::max(escape - 1, 0);
            if is_escaped { c } else { c.to_ascii_lowercase() }
        };
        let name: String = typed.chars().map(lower).collect();
        let without_dots = name.replace('.', "");
        if self.has_significant_dots || without_dots.is_empty() { name } else { without_dots }
    }
}

/// The number of a profile without a name, which Facebook accepts in place of a name.
pub fn profile_number(url: &Url) -> Option<String> {
    let (_, id) = url.query_pairs().find(|(key, _)| key == "id")?;
    (!id.is_empty() && id.bytes().all(|b| b.is_ascii_digit())).then(|| id.into_owned())
}
