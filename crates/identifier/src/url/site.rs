//! The services with profiles in [`profile`]: the form of names there, and the pages that
//! belong to no user.
//!
//! These tables are part of the version of the rules: a new row needs a new version.

use url::Url;

use super::address::normalize_escapes;
use super::profile;
use super::query::value;
use crate::rejection::{BrokenRule, Rule};

/// The kind of page at an address.
pub enum PageKind {
    /// A profile with this canonical address.
    Profile(String),
    /// Another page of one of these services. Its path identifies it.
    Section,
    /// A page of another host.
    OtherHost,
}

/// The kind of page at an address. `path` has no slash at its end.
///
/// # Errors
/// [`Rule::UrlPage`] for a page that belongs to no user.
pub fn page_kind(host: &str, path: &str, url: &Url) -> Result<PageKind, BrokenRule> {
    let Some((service, site)) = site(host) else { return Ok(PageKind::OtherHost) };
    let path_lower = path.to_ascii_lowercase();
    let mut segments = path_lower.split('/').skip(1);
    let (first, is_single) = (segments.next().unwrap_or_default(), segments.next().is_none());
    if let Some(numbered) = numbered_profile(service.host, &path_lower, url) {
        return numbered.map(PageKind::Profile).ok_or_else(|| Rule::UrlPage.into());
    }
    let is_reserved = site.reserved.contains(&first) || is_single && site.sections.contains(&first);
    if path.is_empty() || is_reserved {
        return Err(Rule::UrlPage.into());
    }

    let name = path_lower.starts_with(service.prefix).then(|| &path[service.prefix.len()..]);
    let Some(name) = name.filter(|name| !name.contains('/')) else { return Ok(PageKind::Section) };
    let name = if site.has_at { without_at(name) } else { name };
    let canonical = service.canonical_name(name);
    if name.is_empty() || site.is_page_name(&canonical) {
        return Err(Rule::UrlPage.into());
    }
    Ok(match (site.is_name)(name) {
        true => PageKind::Profile(service.address(&canonical)),
        false => PageKind::Section,
    })
}

/// The canonical address of a profile by its number, if this is the page of those. `Some(None)` if
/// it lacks the number.
fn numbered_profile(host: &str, path: &str, url: &Url) -> Option<Option<String>> {
    match (host, path) {
        (FACEBOOK, profile::NUMBERED_PROFILE) => {
            let number = profile::profile_number(url);
            Some(number.map(|number| format!("https://{FACEBOOK}/{number}")))
        }
        (LINKEDIN, VIEW) => {
            let query = normalize_escapes(url.query().unwrap_or_default());
            let query = query.unwrap_or_default();
            Some(value(&query, "id").map(|id| format!("https://{LINKEDIN}{VIEW}?id={id}")))
        }
        _ => None,
    }
}

fn site(host: &str) -> Option<(&'static profile::Service, &'static Site)> {
    let service = profile::service(host)?;
    Some((service, SITES.iter().find(|site| site.host == service.host)?))
}

/// The start of the canonical addresses of the profiles whose addresses start so.
pub fn profile_start(host: &str, path: &str) -> Option<String> {
    let (service, site) = site(host)?;
    let (prefix, name) = path.split_at_checked(service.prefix.len())?;
    let name = if site.has_at { without_at(name) } else { name };
    let is_start = prefix.eq_ignore_ascii_case(service.prefix);
    (is_start && (name.is_empty() || (site.is_name)(name)))
        .then(|| service.address(&service.canonical_name(name)))
}

/// A name without the `@` in front, plain or escaped.
fn without_at(name: &str) -> &str {
    name.strip_prefix('@').or_else(|| name.strip_prefix("%40")).unwrap_or(name)
}

const LINKEDIN: &str = "www.linkedin.com";
const FACEBOOK: &str = "www.facebook.com";
/// LinkedIn's page of a profile by its number:
/// <https://www.linkedin.com/help/linkedin/answer/a522735>.
const VIEW: &str = "/profile/view";

/// The names and pages of a service.
struct Site {
    /// The canonical host.
    host: &'static str,
    /// Whether a name has the form of names there.
    is_name: fn(&str) -> bool,
    /// Whether the service leads from `@NAME` to `NAME`.
    has_at: bool,
    /// First parts of paths whose pages belong to no user, or to the one who is logged in.
    reserved: &'static [&'static str],
    /// First parts of paths that are no pages of users alone, but lead to such.
    sections: &'static [&'static str],
}

/// Sources:
///
/// - LinkedIn, <https://www.linkedin.com/help/linkedin/answer/a542685>: 3 to 100 characters; older
///   names may have dots, and names of other scripts are escaped.
/// - GitHub, <https://docs.github.com/en/enterprise-cloud@latest/admin/managing-iam/iam-configuration-reference/username-considerations-for-external-authentication>:
///   letters, digits and hyphens, and the underscore of managed users; reserved names:
///   <https://github.com/Mottie/github-reserved-names>.
/// - Facebook, <https://www.facebook.com/help/105399436216001>: letters, digits and dots. Some old
///   names are shorter than the five characters of new ones.
/// - X, <https://help.x.com/en/managing-your-account/x-username-rules>: letters, digits and `_`, at
///   most 15. The page of @NAME leads to that of NAME.
/// - Instagram, <https://help.instagram.com/583107688369069>: letters, digits, dots and `_`, at
///   most 30. The page of @NAME leads to that of NAME.
///
/// Reserved pages: the paths of each service's own menus, log-in and help.
#[rustfmt::skip]
const SITES: [Site; 5] = [
    Site {
        host: LINKEDIN,
        is_name: |name| has_form(name, 100, b"-._~%"),
        has_at: false,
        reserved: &[
            "directory", "feed", "games", "help", "home", "jobs", "learning", "legal", "me",
            "messaging", "mynetwork", "mypreferences", "nhome", "notifications", "premium",
            "psettings", "search", "settings", "share", "sharearticle", "sharing", "today",
        ],
        sections: &[
            "company", "groups", "in", "newsletters", "posts", "profile", "pub", "pulse", "school",
            "services", "showcase",
        ],
    },
    Site {
        host: "github.com",
        is_name: |name| has_form(name, 39, b"-_") && !name.starts_with('-'),
        has_at: false,
        reserved: &[
            "about", "account", "codespaces", "contact", "copilot", "customer-stories", "dashboard",
            "enterprise", "events", "explore", "features", "home", "issues", "logos", "marketplace",
            "new", "notifications", "oauth", "password_reset", "pricing", "pulls", "search",
            "security", "settings", "share", "site", "team", "trending", "watching",
        ],
        sections: &[
            "apps", "collections", "enterprises", "organizations", "orgs", "readme", "sponsors",
            "stars", "topics", "users",
        ],
    },
    Site {
        host: FACEBOOK,
        is_name: |name| has_form(name, 50, b"."),
        has_at: false,
        reserved: &[
            "ads", "bookmarks", "business", "careers", "friends", "gaming", "hashtag", "help",
            "home", "home.php", "legal", "login", "login.php", "me", "memories", "messages",
            "notifications", "permalink.php", "photo", "photo.php", "photos.php", "policies",
            "privacy", "public", "r.php", "recover", "reg", "saved", "search", "search.php",
            "settings", "share", "story.php", "video.php", "watch",
        ],
        sections: &[
            "directory", "events", "fundraisers", "games", "groups", "live", "marketplace", "media",
            "notes", "p", "pages", "people", "pg", "photos", "reel", "reels", "stories", "videos",
        ],
    },
    Site {
        host: "x.com",
        is_name: |name| has_form(name, 15, b"_"),
        has_at: true,
        reserved: &[
            "about", "bookmarks", "compose", "download", "explore", "follower_requests", "hashtag",
            "home", "jobs", "messages", "notifications", "privacy", "search", "search-advanced",
            "settings", "signup", "tos", "who_to_follow",
        ],
        sections: &["communities", "i", "lists", "statuses"],
    },
    Site {
        host: "www.instagram.com",
        is_name: |name| has_form(name, 30, b"._"),
        has_at: true,
        reserved: &[
            "about", "api", "developer", "direct", "directory", "emails", "explore", "home",
            "legal", "login", "press", "privacy", "search", "session", "settings", "share", "web",
        ],
        sections: &["p", "reel", "reels", "stories", "tv"],
    },
];

impl Site {
    /// Whether a canonical name is that of a page. LinkedIn's names are in a folder of their own.
    fn is_page_name(&self, name: &str) -> bool {
        match self.host {
            LINKEDIN => name == "me",
            _ => self.reserved.contains(&name) || self.sections.contains(&name),
        }
    }
}

/// Whether a name has 1 to `max` ASCII letters, digits and these signs, and not only dots: those
/// are steps in a path.
fn has_form(name: &str, max: usize, signs: &[u8]) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || signs.contains(&b);
    name.len() <= max && name.bytes().all(is_allowed) && name.bytes().any(|b| b != b'.')
}
