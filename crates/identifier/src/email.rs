//! Email addresses: addr-spec of RFC 5321 and RFC 6531, without quoting, comments and address
//! literals. Dots and plus tags stay, as providers differ in their treatment.

use super::domain::{ends_in_a_number, has_allowed_characters, is_too_long, mapped_character};
use super::rejection::{BrokenRule, Rule};
use super::trace::{Trace, nfc};
use super::unicode::{CharacterIssue, character_issue, is_mark};

const MAX_LOCAL: usize = 64;
const MAX_TOTAL: usize = 254;
const MAX_DOMAIN: usize = 253;
const MAX_LABEL: usize = 63;

/// The fast path of [`canonical`] for ordinary ASCII addresses; `None` for all other input, valid
/// or not.
pub(super) fn quick(typed: &str) -> Option<String> {
    let bytes = typed.as_bytes();
    let at = bytes.iter().take(MAX_LOCAL + 1).position(|&b| b == b'@')?;
    let (local, domain) = (&bytes[..at], &bytes[at + 1..]);
    (bytes.len() <= MAX_TOTAL && is_plain_local(local) && is_plain_domain(domain))
        .then(|| typed.to_ascii_lowercase())
}

fn is_plain_local(local: &[u8]) -> bool {
    local.split(|&b| b == b'.').all(|atom| !atom.is_empty() && atom.iter().all(|&b| is_atext(b)))
}

/// Whether UTS 46 with STD3, hyphen and length rules accepts the domain and only lower-cases it. A
/// hyphen pair at positions three and four marks an A-label or a reserved label. A last label that
/// begins with a digit may be a number.
fn is_plain_domain(domain: &[u8]) -> bool {
    let mut labels = domain.rsplit(|&b| b == b'.');
    let is_plain_last = |last: &[u8]| is_plain_label(last) && !last[0].is_ascii_digit();
    domain.len() <= MAX_DOMAIN
        && labels.next().is_some_and(is_plain_last)
        && labels.all(is_plain_label)
}

fn is_plain_label(label: &[u8]) -> bool {
    (1..=MAX_LABEL).contains(&label.len())
        && label.iter().all(|&b| b.is_ascii_alphanumeric() || b == b'-')
        && label[0] != b'-'
        && label[label.len() - 1] != b'-'
        && label.get(2..4) != Some(b"--")
}

/// Whether a byte is `atext` (RFC 5322, section 3.2.3).
const fn is_atext(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9'
        | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'/'
        | b'=' | b'?' | b'^' | b'_' | b'`' | b'{' | b'|' | b'}' | b'~')
}

pub(super) fn canonical(typed: &str, trace: &mut impl Trace) -> Result<String, BrokenRule> {
    let canonical = mapped(typed, trace)?;
    let (local, domain) = typed.split_once('@').unwrap_or_default();
    let domain_start = local.chars().count() + 1;
    let (_, ascii) = canonical.split_once('@').unwrap_or_default();
    if ends_in_a_number(ascii) {
        return Err(Rule::EmailLiteral.at(domain_start));
    }
    if let Some(position) = mapped_character(domain) {
        return Err(Rule::EmailDomainCharacter.at(domain_start + position));
    }
    let (unicode, _) = idna::domain_to_unicode(ascii);
    if has_allowed_characters(&unicode) {
        Ok(canonical)
    } else {
        Err(Rule::EmailDomainCharacter.at(domain_start))
    }
}

/// The address with its parts mapped. Its domain may be any of UTS 46, or an IPv4 address.
fn mapped(typed: &str, trace: &mut impl Trace) -> Result<String, BrokenRule> {
    let (local, domain) = split(typed)?;
    check_local(local)?;
    let domain_start = local.chars().count() + 1;
    let mapped_local = map_local(local, trace)?;
    let ascii_domain =
        map_domain(domain, trace).ok_or_else(|| Rule::EmailDomain.at(domain_start))?;
    if mapped_local.len() > MAX_LOCAL {
        return Err(Rule::EmailLocalLength.into());
    }

    let canonical = format!("{mapped_local}@{ascii_domain}");
    if canonical.len() > MAX_TOTAL {
        return Err(Rule::EmailLength.into());
    }
    Ok(canonical)
}

/// The address in text that has more than it: after a name, as in `Ann Lee <ann@example.com>`, or
/// in a `mailto:` link. None if the text has none.
///
/// ```
/// use polynym_identifier::email_within;
///
/// assert_eq!(email_within("\"Lee, Ann\" <ann@example.com>"), Some("ann@example.com"));
/// assert_eq!(email_within("mailto:ann@example.com?subject=Hello"), Some("ann@example.com"));
/// assert_eq!(email_within("ann@example.com"), None);
/// ```
pub fn email_within(typed: &str) -> Option<&str> {
    let text = typed.trim();
    let address = match text.strip_suffix('>').and_then(|text| text.rsplit_once('<')) {
        Some((_, address)) => address.trim(),
        None => text,
    };
    let address = match has_scheme(address) {
        true => address[SCHEME.len()..].split('?').next().unwrap_or_default(),
        false => address,
    };
    (address != text && canonical(address, &mut ()).is_ok()).then_some(address)
}

/// The scheme of a link that writes to an address (RFC 6068).
const SCHEME: &str = "mailto:";

fn has_scheme(text: &str) -> bool {
    text.get(..SCHEME.len()).is_some_and(|start| start.eq_ignore_ascii_case(SCHEME))
}

fn split(typed: &str) -> Result<(&str, &str), BrokenRule> {
    if typed.trim_end().ends_with('>')
        && let Some(position) = typed.chars().position(|c| c == '<')
    {
        return Err(Rule::EmailName.at(position));
    }
    if has_scheme(typed) {
        return Err(Rule::EmailScheme.at(0));
    }
    if typed.starts_with('"') {
        return Err(Rule::EmailQuoted.at(0));
    }
    if let Some(position) = typed.chars().position(|c| c == '(') {
        return Err(Rule::EmailComment.at(position));
    }

    let (local, domain) = typed.split_once('@').ok_or(Rule::EmailAtMissing)?;
    let domain_start = local.chars().count() + 1;
    if domain.starts_with('[') {
        return Err(Rule::EmailLiteral.at(domain_start));
    }

    let Some((first, _)) = domain.split_once('@') else { return Ok((local, domain)) };
    let is_between = |c: char| matches!(c, ',' | ';') || c.is_whitespace();
    Err(match first.chars().position(is_between) {
        Some(position) => Rule::EmailSeveral.at(domain_start + position),
        None => Rule::EmailAtRepeated.at(domain_start + first.chars().count()),
    })
}

fn check_local(local: &str) -> Result<(), BrokenRule> {
    if local.is_empty() {
        return Err(Rule::EmailLocalLength.at(0));
    }
    let mut after_dot = true;
    for (position, c) in local.chars().enumerate() {
        if c == '.' && after_dot {
            return Err(Rule::EmailDot.at(position));
        }
        if let Some(rule) = broken_by(c).filter(|_| c != '.') {
            return Err(rule.at(position));
        }
        if position == 0 && is_mark(c) {
            return Err(Rule::EmailMark.at(0));
        }
        after_dot = c == '.';
    }

    if after_dot {
        return Err(Rule::EmailDot.at(local.chars().count() - 1));
    }
    Ok(())
}

/// The rule that a character breaks, if any. RFC 6531, section 3.3, adds non-ASCII characters to
/// `atext`; control characters, white space, invisible and unassigned characters stay invalid.
fn broken_by(c: char) -> Option<Rule> {
    let is_allowed = match u8::try_from(c) {
        Ok(byte) if byte.is_ascii() => is_atext(byte),
        _ => !c.is_control() && !c.is_whitespace(),
    };
    match character_issue(c) {
        _ if !is_allowed => Some(Rule::EmailCharacter),
        Some(CharacterIssue::Invisible) => Some(Rule::EmailInvisible),
        Some(CharacterIssue::Unassigned) => Some(Rule::EmailUnassigned),
        None => None,
    }
}

fn map_local(local: &str, trace: &mut impl Trace) -> Result<String, BrokenRule> {
    let composed = nfc(local);
    trace.step("nfc", local, &composed);
    let lower = composed.to_lowercase();
    trace.step("lower-case", &composed, &lower);
    let mapped = nfc(&lower);
    trace.step("nfc", &lower, &mapped);
    // Checks the result too: U+037E composes to a semicolon.
    check_local(&mapped).map_err(|_| Rule::EmailCharacter)?;
    Ok(mapped.into_owned())
}

fn map_domain(domain: &str, trace: &mut impl Trace) -> Option<String> {
    if is_too_long(domain) {
        return None;
    }
    let ascii = idna::domain_to_ascii_strict(domain).ok()?;
    trace.step("uts46", domain, &ascii);
    Some(ascii)
}
