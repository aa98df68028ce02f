//! The canonical form of a URL: the address of one page, with the parts of its query that identify
//! it.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use url::Url;

use super::address::{self, bad_escape, checked_length};
use super::page_kind::PageKind;
use super::scheme::{self, is_trimmed};
use super::{known, query, subpage, wrapper};
use crate::domain::mapped_character;
use crate::rejection::{BrokenRule, Rule};
use crate::trace::Trace;

/// The canonical form.
pub fn canonical(typed: &str, trace: &mut impl Trace) -> Result<String, BrokenRule> {
    match scheme::added(typed) {
        Some(whole) => {
            trace.step("https", typed, &whole);
            let address = form(&whole, trace);
            address.map_err(|broken| broken.shifted_back(scheme::HTTPS.len()))
        }
        None => form(typed, trace),
    }
}

fn form(typed: &str, trace: &mut impl Trace) -> Result<String, BrokenRule> {
    check_blanks(typed)?;
    check_host(typed)?;
    let url = address::parse_url(typed, trace)?;
    check_fragment(typed, &url)?;
    trace.step("fragment", url.fragment().unwrap_or_default(), "");

    let path_only = || bad_escape(typed, typed.find(['?', '#']).unwrap_or(typed.len()));
    let escaped = address::normalize_escapes(url.path()).ok_or_else(path_only)?;
    let host = address::host(&url);
    let trimmed = escaped.trim_end_matches('/');
    if wrapper::is_wrapper(host, trimmed) {
        return Err(Rule::UrlWrapper.into());
    }

    let query = url.query().unwrap_or_default();
    let page = match subpage::kind(host, trimmed, &url)? {
        PageKind::Profile(profile) => {
            let path = address::path(url.path(), trace).ok_or_else(path_only)?;
            let kept = profile.split_once('?').map_or("", |(_, query)| query).to_owned();
            trace.step("query", query, &kept);
            let typed = Page { host: host.into(), path, query: kept };
            trace.step("profile", &typed.address(), &profile);
            return checked_length(profile);
        }
        PageKind::Section(host) => Page { host, path: trimmed.to_owned(), query: String::new() },
        PageKind::Other(host) => elsewhere(host, trimmed, query)?
            .ok_or_else(|| bad_escape(typed, typed.find('#').unwrap_or(typed.len())))?,
    };

    trace.step("escapes", url.path(), &escaped);
    if page.query.is_empty() || !trimmed.is_empty() {
        trace.step("trailing-slashes", &escaped, trimmed);
    }
    trace.step("query", query, &page.query);
    let address = page.address();
    trace.step("profile", &format!("https://{host}{}", page.suffix(trimmed)), &address);
    checked_length(address)
}

/// A page and the query that identifies it.
struct Page<'a> {
    host: Cow<'a, str>,
    path: String,
    query: String,
}

impl Page<'_> {
    fn address(&self) -> String {
        format!("https://{}{}", self.host, self.suffix(&self.path))
    }

    /// The address after the host, with this path. A query follows a slash at least.
    fn suffix(&self, path: &str) -> String {
        match (path, self.query.as_str()) {
            (path, "") => path.to_owned(),
            ("", query) => format!("/?{query}"),
            (path, query) => format!("{path}?{query}"),
        }
    }
}

/// The page at an address outside of the services with profiles. `None` if an escape of the query
/// is malformed.
fn elsewhere<'a>(
    host: Cow<'a, str>,
    path: &str,
    typed_query: &str,
) -> Result<Option<Page<'a>>, BrokenRule> {
    let Some(query) = address::normalize_escapes(typed_query) else { return Ok(None) };
    if let Some(known) = known::page(&host, path, &query)? {
        let host = known.host.map_or(host, Cow::Borrowed);
        return Ok(Some(Page { host, path: path.to_owned(), query: known.query }));
    }
    let query = query::without_tracking(&query);
    Ok(Some(Page { host, path: path.to_owned(), query }))
}

/// Rejects white space inside of the text. The URL standard ignores it around the text.
fn check_blanks(typed: &str) -> Result<(), BrokenRule> {
    let start = typed.trim_start_matches(is_trimmed);
    let offset = typed.chars().count() - start.chars().count();
    let inner = start.trim_end_matches(is_trimmed);
    match inner.chars().position(char::is_whitespace) {
        Some(position) => Err(Rule::UrlBlank.at(offset + position)),
        None => Ok(()),
    }
}

/// Rejects signs in the host that become letters or digits, escaped or not.
fn check_host(typed: &str) -> Result<(), BrokenRule> {
    let authority = percent_decode_str(address::authority(typed)).decode_utf8_lossy();
    if mapped_character(&authority).is_some() { Err(Rule::UrlHost.into()) } else { Ok(()) }
}

/// Rejects a fragment that tells pages apart: a path, a name or a parameter, or anything after a
/// host alone. Other fragments lead to a part of the page, as text directives at their end do.
fn check_fragment(typed: &str, url: &Url) -> Result<(), BrokenRule> {
    let fragment = url.fragment().unwrap_or_default();
    let fragment = fragment.split(TEXT_DIRECTIVE).next().unwrap_or_default();
    let decoded = percent_decode_str(fragment).decode_utf8_lossy();
    let query = query::without_tracking(url.query().unwrap_or_default());
    let is_bare_host = matches!(url.path(), "" | "/") && query.is_empty();
    let names_page = decoded.starts_with('!') || decoded.contains(['/', '@', '=', '?']);
    match !fragment.is_empty() && (is_bare_host || names_page) {
        true => match typed.find('#') {
            Some(at) => Err(Rule::UrlFragment.at(typed[..at].chars().count())),
            None => Err(Rule::UrlFragment.into()),
        },
        false => Ok(()),
    }
}

/// The start of the part of a fragment that highlights text in the page:
/// <https://wicg.github.io/scroll-to-text-fragment/>.
const TEXT_DIRECTIVE: &str = ":~:";
