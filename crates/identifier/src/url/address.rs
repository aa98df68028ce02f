//! The parts of addresses: URLs parsed by WHATWG's URL standard, with a host that can be canonical.

use url::Url;

use super::scheme;
use crate::domain::is_too_long;
use crate::rejection::{BrokenRule, Rule};
use crate::trace::Trace;

const MAX_BYTES: usize = 2048;

/// Parses a URL with a host that can be canonical.
pub fn parse_url(typed: &str, trace: &mut impl Trace) -> Result<Url, BrokenRule> {
    if is_too_long(authority(typed)) {
        return Err(Rule::UrlHost.into());
    }
    let url = Url::parse(typed).map_err(|_| Rule::UrlSyntax)?;
    trace.step("whatwg", typed, url.as_str());
    check_authority(&url)?;
    trace.step("https", url.scheme(), "https");
    trace.step("host-dot", url.host_str().unwrap_or_default(), host(&url));
    if host(&url).split('.').any(str::is_empty) {
        return Err(Rule::UrlHost.into());
    }

    Ok(url)
}

/// The address, unless it is too long.
pub fn checked_length(address: String) -> Result<String, BrokenRule> {
    if address.len() > MAX_BYTES { Err(Rule::UrlLength.into()) } else { Ok(address) }
}

/// Whether two texts are spellings of one URL, with query and fragment. Earlier rules dropped both,
/// so that URLs of two pages may have one canonical form.
pub fn is_same(one: &str, other: &str) -> bool {
    let parts = |typed: &str| {
        let whole = scheme::added(typed);
        let url = Url::parse(whole.as_deref().unwrap_or(typed)).ok()?;
        let path = normalize_escapes(url.path())?.trim_end_matches('/').to_owned();
        let rest = [url.query(), url.fragment()].map(|part| part.unwrap_or_default().to_owned());
        Some((host(&url).to_owned(), path, rest))
    };
    one == other || parts(one).is_some_and(|one| Some(one) == parts(other))
}

/// The host in canonical form.
pub fn host(url: &Url) -> &str {
    let host = url.host_str().unwrap_or_default();
    host.strip_suffix('.').unwrap_or(host)
}

/// The authority of an unparsed URL: the text from the first slashes, of either kind, to the next
/// of `/`, `\\`, `?` and `#`.
pub fn authority(typed: &str) -> &str {
    let (_, rest) = typed.split_once(':').unwrap_or_default();
    rest.trim_start_matches(['/', '\\', '\t', '\n', '\r'])
        .split(['/', '\\', '?', '#'])
        .next()
        .unwrap_or_default()
}

fn check_authority(url: &Url) -> Result<(), BrokenRule> {
    if !matches!(url.scheme(), "https" | "http") {
        return Err(Rule::UrlScheme.at(0));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Rule::UrlUserInfo.into());
    }

    // The parser has removed the default port.
    match url.port() {
        Some(_) => Err(Rule::UrlPort.into()),
        None => Ok(()),
    }
}

/// The path in canonical form. `None` if an escape is malformed.
pub fn path(path: &str, trace: &mut impl Trace) -> Option<String> {
    let mut normalized = normalize_escapes(path)?;
    trace.step("escapes", path, &normalized);
    let trimmed_len = normalized.trim_end_matches('/').len();
    trace.step("trailing-slashes", &normalized, &normalized[..trimmed_len]);
    normalized.truncate(trimmed_len);
    Some(normalized)
}

/// Normalises escapes (RFC 3986, section 6.2.2): unreserved characters are decoded, other escapes
/// capitalised. `None` if one is malformed.
pub fn normalize_escapes(path: &str) -> Option<String> {
    let mut normalized = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((plain, tail)) = rest.split_once('%') {
        normalized.push_str(plain);
        let digits = escape_digits(tail)?;
        match u8::from_str_radix(digits, 16) {
            Ok(byte) if is_unreserved(byte) => normalized.push(char::from(byte)),
            _ => {
                normalized.push('%');
                normalized.push_str(&digits.to_ascii_uppercase());
            }
        }
        rest = &tail[digits.len()..];
    }
    normalized.push_str(rest);

    Some(normalized)
}

/// The two hexadecimal digits that must follow a percent sign.
fn escape_digits(tail: &str) -> Option<&str> {
    let digits = tail.get(..2)?;
    digits.bytes().all(|b| b.is_ascii_hexdigit()).then_some(digits)
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// The error for a malformed escape in the first `end` bytes.
pub fn bad_escape(typed: &str, end: usize) -> BrokenRule {
    let is_bad = |&(at, _): &(usize, &str)| escape_digits(&typed[at + 1..end]).is_none();
    match typed[..end].match_indices('%').find(is_bad) {
        Some((at, _)) => Rule::UrlEscape.at(typed[..at].chars().count()),
        None => Rule::UrlEscape.into(),
    }
}
