//! Profile pages of well-known services. Each service shows a profile under several addresses,
//! which are one identity here.
//!
//! This table is a part of the rules' version: a service that is added needs another version.

use url::Url;

/// A service whose profile pages are known.
struct Service {
    /// The host under which it shows profiles.
    host: &'static str,
    /// Other hosts that lead to the same pages.
    others: &'static [&'static str],
    /// Whether each country has such a host, as `de.linkedin.com`.
    countries: bool,
    /// The path in front of a name.
    prefix: &'static str,
    /// Whether dots in a name count.
    dots: bool,
}

/// Names differ in nothing but case for none of them. Sources, read in November 2026:
///
/// - LinkedIn, help page 87 "Customize your public profile URL": the part that a member chooses
///   "is case insensitive".
/// - GitHub, documentation "Username considerations for external authentication": a login is
///   unique whatever its case.
/// - Facebook, help page 105399436216001 on user names: dots and capitals do not count.
/// - X, help page "Using X": the same account whatever the case of its name; `twitter.com` leads
///   to `x.com`.
/// - Instagram, help page 583107688369069 on user names: names are kept in small letters.
const SERVICES: [Service; 5] = [
    Service {
        host: "www.linkedin.com",
        others: &["linkedin.com", "m.linkedin.com"],
        countries: true,
        prefix: "/in/",
        dots: true,
    },
    Service {
        host: "github.com",
        others: &["www.github.com"],
        countries: false,
        prefix: "/",
        dots: true,
    },
    Service {
        host: "www.facebook.com",
        others: &[
            "facebook.com",
            "m.facebook.com",
            "mbasic.facebook.com",
            "touch.facebook.com",
            "web.facebook.com",
            "fb.com",
            "www.fb.com",
        ],
        countries: false,
        prefix: "/",
        dots: false,
    },
    Service {
        host: "x.com",
        others: &[
            "www.x.com",
            "mobile.x.com",
            "twitter.com",
            "www.twitter.com",
            "mobile.twitter.com",
            "m.twitter.com",
        ],
        countries: false,
        prefix: "/",
        dots: true,
    },
    Service {
        host: "www.instagram.com",
        others: &["instagram.com", "m.instagram.com"],
        countries: false,
        prefix: "/",
        dots: true,
    },
];

/// Facebook's page of a profile that has no name.
const BY_NUMBER: &str = "/profile.php";

/// The one address of the profile that a URL shows; none where it shows none, or the service is
/// not known. `host` and `path` are those of `url`, in canonical form.
pub(super) fn address(url: &Url, host: &str, path: &str) -> Option<String> {
    let service = SERVICES.iter().find(|service| service.is_at(host))?;
    let front = path.get(..service.prefix.len())?;
    let name = &path[front.len()..];
    if !front.eq_ignore_ascii_case(service.prefix) || name.is_empty() || name.contains('/') {
        return None;
    }

    let name = match path.eq_ignore_ascii_case(BY_NUMBER) {
        true if !service.dots => number(url)?,
        _ => service.name(name),
    };
    Some(format!("https://{}{}{name}", service.host, service.prefix))
}

impl Service {
    fn is_at(&self, host: &str) -> bool {
        host == self.host
            || self.others.contains(&host)
            || self.countries && self.is_country(host).unwrap_or(false)
    }

    fn is_country(&self, host: &str) -> Option<bool> {
        let domain = self.host.strip_prefix("www")?;
        let country = host.strip_suffix(domain)?;
        Some(country.len() == 2 && country.bytes().all(|b| b.is_ascii_lowercase()))
    }

    /// A name as it is compared. Escapes stay in capitals.
    fn name(&self, typed: &str) -> String {
        let mut escape = 0;
        let lower = |c: char| {
            escape = if c == '%' { 3 } else { escape };
            let is_escaped = escape > 0;
            escape = i32::max(escape - 1, 0);
            if is_escaped { c } else { c.to_ascii_lowercase() }
        };
        let name: String = typed.chars().map(lower).collect();
        let without = name.replace('.', "");
        if self.dots || without.is_empty() { name } else { without }
    }
}

/// The number of a profile without a name, under which Facebook shows it, too.
fn number(url: &Url) -> Option<String> {
    let (_, id) = url.query_pairs().find(|(key, _)| key == "id")?;
    (!id.is_empty() && id.bytes().all(|b| b.is_ascii_digit())).then(|| id.into_owned())
}
