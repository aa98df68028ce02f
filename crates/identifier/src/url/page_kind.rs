//! The kinds of pages of the services with profiles.

use std::borrow::Cow;

use url::Url;

use super::address::normalize_escapes;
use super::query::value;
use super::site::Site;
use super::sites::{FACEBOOK, LINKEDIN};
use crate::rejection::{BrokenRule, Rule};

/// The kind of page at an address.
pub enum PageKind<'h> {
    /// A profile with this canonical address.
    Profile(String),
    /// Another page of one of these services, at this host. Its path identifies it.
    Section(Cow<'h, str>),
    /// A page of another host. Its path and its query identify it.
    Other(Cow<'h, str>),
}

/// The canonical address of the profile at this path of a service; none if it is another page.
///
/// # Errors
/// [`Rule::UrlPage`] for a page that belongs to no user.
pub fn profile_of(site: &Site, path: &str, url: &Url) -> Result<Option<String>, BrokenRule> {
    let path_lower = path.to_ascii_lowercase();
    let mut segments = path_lower.split('/').skip(1);
    let (first, is_single) = (segments.next().unwrap_or_default(), segments.next().is_none());
    if let Some(numbered) = numbered_profile(site.host, &path_lower, url) {
        return numbered.map(Some).ok_or_else(|| Rule::UrlPage.into());
    }
    let is_reserved = site.reserved.contains(&first) || is_single && site.sections.contains(&first);
    if path.is_empty() || is_reserved {
        return Err(Rule::UrlPage.into());
    }

    let name = path_lower.starts_with(site.prefix).then(|| &path[site.prefix.len()..]);
    let Some(name) = name.filter(|name| !name.contains('/')) else { return Ok(None) };
    let name = site.name(name);
    let canonical = site.canonical_name(name);
    if name.is_empty() || is_page_name(site, &canonical) {
        return Err(Rule::UrlPage.into());
    }
    Ok((site.is_name)(name).then(|| site.address(&canonical)))
}

/// The canonical address of a profile by its number, if this is the page of those. `Some(None)` if
/// it lacks the number.
fn numbered_profile(host: &str, path: &str, url: &Url) -> Option<Option<String>> {
    match (host, path) {
        (FACEBOOK, NUMBERED_PROFILE) => {
            let number = profile_number(url);
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

/// The number of a profile without a name, which Facebook accepts in place of a name.
fn profile_number(url: &Url) -> Option<String> {
    let (_, id) = url.query_pairs().find(|(key, _)| key == "id")?;
    (!id.is_empty() && id.bytes().all(|b| b.is_ascii_digit())).then(|| id.into_owned())
}

/// Facebook's page of a profile without a name.
const NUMBERED_PROFILE: &str = "/profile.php";
/// LinkedIn's page of a profile by its number:
/// <https://www.linkedin.com/help/linkedin/answer/a522735>.
const VIEW: &str = "/profile/view";

/// Whether a canonical name is that of a page. LinkedIn's names are in a folder of their own.
fn is_page_name(site: &Site, name: &str) -> bool {
    match site.prefix {
        "/" => site.reserved.contains(&name) || site.sections.contains(&name),
        _ => site.host == LINKEDIN && name == "me",
    }
}

/// The start of the canonical addresses of the profiles whose addresses start so and have this path
/// before the name.
pub fn start_after(site: &Site, prefix: &str, path: &str) -> Option<String> {
    let (start, name) = path.split_at_checked(prefix.len())?;
    let name = site.name(name);
    let is_start = start.eq_ignore_ascii_case(prefix);
    (is_start && (name.is_empty() || (site.is_name)(name)))
        .then(|| site.address(&site.canonical_name(name)))
}
