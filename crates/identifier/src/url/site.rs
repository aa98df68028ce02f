//! A service with profiles: its hosts, the form of names there, and its pages.

use std::borrow::Cow;

use super::known::is_country;
use super::sites::SITES;

/// A service with known pages. The rows are in [`SITES`](super::sites::SITES).
pub struct Site {
    /// The canonical host. One that starts with a dot has a host for each person.
    pub host: &'static str,
    /// Other hosts of the same pages.
    pub aliases: &'static [&'static str],
    /// The path before a name; empty if the rules know only the hosts.
    pub prefix: &'static str,
    /// Whether dots in a name are significant.
    pub has_significant_dots: bool,
    /// Whether a name has the form of names there.
    pub is_name: fn(&str) -> bool,
    /// Whether the service leads from `@NAME` to `NAME`.
    pub has_at: bool,
    /// First parts of paths whose pages belong to no user, or to the one who is logged in.
    pub reserved: &'static [&'static str],
    /// First parts of paths that are no pages of users alone, but lead to such.
    pub sections: &'static [&'static str],
    /// The domains of the service, the ones it moved from too. Each is also at
    /// `www.`, `m.` and `mobile.`. One that ends with a dot has the domains of countries.
    pub domains: &'static [&'static str],
    /// Whether languages have hosts, such as `de-de.facebook.com`.
    pub has_language_hosts: bool,
    /// Whether a language may be in front of the path, as in `/de/user/NAME`.
    pub has_language_paths: bool,
    /// Other paths before a name.
    pub also: &'static [&'static str],
    /// The paths before names of other kinds, which keep their case.
    pub folders: &'static [&'static str],
    /// The paths of profiles by number. `#` is a part that is the number, `-#` one
    /// that ends with it, and `*` any part.
    pub numbered: &'static [&'static str],
    /// The pages of a profile below its address; all, if there are none.
    pub pages: Option<&'static [&'static str]>,
    /// The paths of posts, in the form of [`numbered`](Self::numbered).
    pub posts: &'static [&'static str],
    /// Whether the case of a name stays.
    pub keeps_case: bool,
    /// Whether no address has a query.
    pub drops_queries: bool,
}

/// A service of which the rules know only the hosts.
pub const HOSTS: Site = Site {
    host: "",
    aliases: &[],
    prefix: "",
    has_significant_dots: true,
    is_name: |_| false,
    has_at: false,
    reserved: &[],
    sections: &[],
    domains: &[],
    has_language_hosts: false,
    has_language_paths: false,
    also: &[],
    folders: &[],
    numbered: &[],
    pages: Some(&[]),
    posts: &[],
    keeps_case: false,
    drops_queries: false,
};

/// The prefixes of the hosts of a domain that show the same pages.
const HOST_PREFIXES: [&str; 3] = ["www.", "m.", "mobile."];

/// The service with this host, and the canonical host.
pub fn find(host: &str) -> Option<(&'static Site, Cow<'static, str>)> {
    SITES.iter().find_map(|site| Some((site, site.canonical_host(host)?)))
}

impl Site {
    fn canonical_host(&self, host: &str) -> Option<Cow<'static, str>> {
        if self.host.starts_with('.') {
            let mut names = self.domains.iter().filter_map(|domain| person(host, domain));
            return names.next().map(|name| format!("{name}{}", self.host).into());
        }
        let prefix = HOST_PREFIXES.iter().find_map(|prefix| host.strip_prefix(prefix));
        let bare = prefix.unwrap_or(host);
        let has_domain = |domain: &&str| match domain.ends_with('.') {
            true => is_country(bare, domain),
            false => bare == *domain || self.has_language_hosts && is_below(host, domain),
        };
        let is_known = self.aliases.contains(&host) || self.domains.iter().any(has_domain);
        is_known.then_some(Cow::Borrowed(self.host))
    }

    /// The address of the profile with a canonical name.
    pub fn address(&self, name: &str) -> String {
        format!("https://{}{}{name}", self.host, self.prefix)
    }

    /// A name in lower case, except escapes, and without insignificant dots.
    pub fn canonical_name(&self, typed: &str) -> String {
        if self.keeps_case {
            return typed.to_owned();
        }
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

    /// A name without the `@` in front, plain or escaped, if the service leads to it.
    pub fn name<'n>(&self, typed: &'n str) -> &'n str {
        let bare = typed.strip_prefix('@').or_else(|| typed.strip_prefix("%40"));
        bare.filter(|_| self.has_at).unwrap_or(typed)
    }
}

/// The part of a host before a domain of countries, such as `ann` in `ann.blogspot.de`.
fn person<'h>(host: &'h str, domain: &str) -> Option<&'h str> {
    let (name, _) = host.split_once(domain)?;
    let rest = host.get(name.len() + 1..)?;
    let is_one = !name.is_empty() && !name.contains('.');
    (is_one && is_country(rest, domain.strip_prefix('.')?)).then_some(name)
}

/// Whether a host is that of a language below a domain, such as `de` or `pt-br`.
fn is_below(host: &str, domain: &str) -> bool {
    let language = host.strip_suffix(domain).and_then(|start| start.strip_suffix('.'));
    language.is_some_and(is_language)
}

/// Whether a text has the form of a language: two letters, or two and those of a country.
pub fn is_language(text: &str) -> bool {
    let mut parts = text.split('-');
    let is_code = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_lowercase());
    parts.clone().count() <= 2 && parts.all(is_code)
}

/// Whether a name has 1 to `max` ASCII letters, digits and these signs, and not only dots: those
/// are steps in a path.
pub fn has_form(name: &str, max: usize, signs: &[u8]) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || signs.contains(&b);
    name.len() <= max && name.bytes().all(is_allowed) && name.bytes().any(|b| b != b'.')
}
