//! The kinds of pages: the pages below a profile are the profile, posts are rejected, and domains
//! that moved are the new ones.

use url::Url;

use super::page_kind::{PageKind, profile_of, start_after};
use super::site::{Site, find, is_language};
use crate::rejection::{BrokenRule, Rule};

/// The kind of page at an address. `path` has no slash at its end.
///
/// # Errors
/// [`Rule::UrlPost`] for a post, and [`Rule::UrlPage`] for another page that belongs to no user.
pub fn kind<'h>(host: &'h str, path: &str, url: &Url) -> Result<PageKind<'h>, BrokenRule> {
    let Some((site, host)) = find(host) else { return Ok(PageKind::Other(host.into())) };
    if site.prefix.is_empty() {
        return Ok(PageKind::Other(host));
    }
    let path = without_language(site, path);
    let lower = path.to_ascii_lowercase();
    if site.posts.iter().any(|pattern| number_at(pattern, &lower).is_some()) {
        return Err(Rule::UrlPost.into());
    }
    if let Some(address) = in_folder(site, path, &lower) {
        return Ok(PageKind::Profile(address));
    }

    let above = profile_path(site, path, &lower);
    Ok(match profile_of(site, above.as_deref().unwrap_or(path), url)? {
        Some(address) => PageKind::Profile(address),
        None if site.drops_queries => PageKind::Section(host),
        None => PageKind::Other(host),
    })
}

/// The starts of the canonical forms of the addresses that start so: the profiles, the page, or
/// both if the page has the address of the profiles without a name.
pub fn starts(host: &str, path: &str) -> Option<Vec<String>> {
    let (site, host) = find(host)?;
    let mut prefixes = site.also.iter().chain([&site.prefix]);
    let profile = prefixes.find_map(|prefix| start_after(site, prefix, path));
    let is_page = profile.is_none()
        || site.also.contains(&path) && !path.ends_with('/')
        || site.also.iter().any(|prefix| may_be_page(site, prefix, path));
    let page = is_page.then(|| format!("https://{host}{path}"));
    Some(profile.into_iter().chain(page).collect())
}

/// Whether what follows a prefix of a path is no name, or may go on as a section, which is none.
fn may_be_page(site: &Site, prefix: &str, path: &str) -> bool {
    let Some(name) = path.strip_prefix(prefix).filter(|name| !name.is_empty()) else {
        return false;
    };
    let lower = name.to_ascii_lowercase();
    !(site.is_name)(name) || site.sections.iter().any(|section| section.starts_with(&lower))
}

/// The path without the language in front of it, if profiles have one there.
fn without_language<'p>(site: &Site, path: &'p str) -> &'p str {
    let rest = || {
        let (language, _) = path.strip_prefix('/')?.split_once('/')?;
        let rest = path.get(1 + language.len()..)?;
        let is_page = rest.to_ascii_lowercase().starts_with(site.prefix);
        (is_language(&language.to_ascii_lowercase()) && is_page).then_some(rest)
    };
    Some(path).filter(|_| site.has_language_paths).and_then(|_| rest()).unwrap_or(path)
}

/// The path of the profile that a page is of, by its name or its number.
fn profile_path(site: &Site, path: &str, lower: &str) -> Option<String> {
    let number = site.numbered.iter().find_map(|pattern| number_at(pattern, lower));
    if let Some(number) = number.filter(|number| !number.is_empty()) {
        return Some(format!("{}{number}", site.prefix));
    }
    let mut prefixes = site.also.iter().chain([&site.prefix]);
    let typed = prefixes.find_map(|prefix| name_after(site, prefix, path, lower))?;
    let name = site.name(typed);
    let is_page = site.prefix == "/" && site.sections.contains(&name.to_ascii_lowercase().as_str());
    ((site.is_name)(name) && !is_page).then(|| format!("{}{typed}", site.prefix))
}

/// The canonical address of a profile in a folder of its own, whose names keep their case.
fn in_folder(site: &Site, path: &str, lower: &str) -> Option<String> {
    site.folders.iter().find_map(|folder| {
        let name = name_after(site, folder, path, lower)?;
        Some(format!("https://{}{folder}{name}", site.host))
    })
}

/// The name after a prefix of a path, if nothing follows it but a page of a profile.
fn name_after<'p>(site: &Site, prefix: &str, path: &'p str, lower: &str) -> Option<&'p str> {
    let rest = lower.strip_prefix(prefix)?;
    let (name, below) = rest.split_once('/').unwrap_or((rest, ""));
    let page = below.split('/').next().unwrap_or_default();
    let is_page = page.is_empty() || site.pages.is_none_or(|pages| pages.contains(&page));
    (!name.is_empty() && is_page).then(|| &path[prefix.len()..][..name.len()])
}

/// The number in a path that starts like a pattern; empty if the pattern has none.
fn number_at<'p>(pattern: &str, path: &'p str) -> Option<&'p str> {
    let mut parts = path.split('/').skip(1);
    let mut number = "";
    for wanted in pattern.split('/') {
        let part = parts.next()?;
        match wanted {
            "*" if !part.is_empty() => {}
            "#" => number = digits(part, 1)?,
            "-#" => number = digits(part.rsplit('-').next()?, MIN_ID)?,
            _ if wanted == part => {}
            _ => return None,
        }
    }
    Some(number)
}

/// The digits of a number after a name: names may end with a small one.
const MIN_ID: usize = 6;

/// A text of at least `min` digits, and of nothing else.
fn digits(text: &str, min: usize) -> Option<&str> {
    (text.len() >= min && text.bytes().all(|b| b.is_ascii_digit())).then_some(text)
}
