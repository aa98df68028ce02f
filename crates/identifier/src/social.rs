//! Accounts at other providers: the provider, as a short name or an issuer's URL, and the subject
//! that it assigned to the account.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::Url;

use super::rejection::{BrokenRule, Rule};
use super::trace::Trace;
use super::unicode::{CharacterIssue, character_issue};

const MAX_NAME: usize = 64;
const MAX_ISSUER: usize = 255;
const MAX_SUBJECT: usize = 255;
/// The scheme of an issuer (OpenID Connect Core 1.0, section 1.2).
const SCHEME: &str = "https://";
/// The escaped characters of an issuer: all except the unreserved characters of RFC 3986.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub(super) fn canonical(
    provider: &str,
    subject: &str,
    trace: &mut impl Trace,
) -> Result<String, BrokenRule> {
    let encoded = match issuer(provider)? {
        Some(issuer) => encode(&issuer).into_owned(),
        None => short_name(provider, trace)?,
    };
    check_subject(subject)?;
    match subject.chars().position(|c| character_issue(c) == Some(CharacterIssue::Invisible)) {
        Some(position) => Err(Rule::SocialSubjectInvisible.at(position)),
        None => Ok(format!("{encoded}/{subject}")),
    }
}

/// Encodes a provider for the canonical form: an issuer is percent-encoded, so that the first slash
/// ends it.
pub(super) fn encode(provider: &str) -> Cow<'_, str> {
    match provider.contains('/') {
        true => utf8_percent_encode(provider, ESCAPED).into(),
        false => provider.into(),
    }
}

/// Decodes the provider of a canonical form. Short names have no percent signs.
pub(super) fn decode(encoded: &str) -> Cow<'_, str> {
    percent_decode_str(encoded).decode_utf8_lossy()
}

/// The issuer of a provider that is a URL, plain or percent-encoded; none for a short name.
fn issuer(provider: &str) -> Result<Option<Cow<'_, str>>, BrokenRule> {
    let issuer = match provider {
        raw if raw.contains("://") => Cow::Borrowed(raw),
        encoded if encoded.contains('%') => decode(encoded),
        _ => return Ok(None),
    };
    check_issuer(&issuer)?;
    Ok(Some(issuer))
}

/// Checks an issuer (OpenID Connect Core 1.0, section 2, `iss`): an https URL without query and
/// fragment. Issuers are compared exactly, so nothing is normalised.
fn check_issuer(issuer: &str) -> Result<(), BrokenRule> {
    let is_issuer = issuer.len() <= MAX_ISSUER
        && issuer.starts_with(SCHEME)
        && !issuer[SCHEME.len()..].starts_with('/')
        && issuer.bytes().all(is_url_byte)
        && Url::parse(issuer)
            .is_ok_and(|url| url.username().is_empty() && url.password().is_none());
    if is_issuer { Ok(()) } else { Err(Rule::SocialIssuer.into()) }
}

/// Whether a byte is allowed by RFC 3986, section 2, except `?` and `#`.
const fn is_url_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'%')
        || matches!(byte, b':' | b'/' | b'[' | b']' | b'@' | b'!' | b'$' | b'&' | b'\'')
        || matches!(byte, b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=')
}

fn short_name(provider: &str, trace: &mut impl Trace) -> Result<String, BrokenRule> {
    let is_bad = |(position, c): (usize, char)| {
        !(c.is_ascii_alphanumeric() || (position > 0 && matches!(c, '.' | '_' | '-')))
    };
    if let Some(position) = provider.chars().enumerate().position(is_bad) {
        return Err(Rule::SocialProvider.at(position));
    }

    if provider.is_empty() || provider.len() > MAX_NAME {
        return Err(Rule::SocialProvider.into());
    }
    let lower = provider.to_ascii_lowercase();
    trace.step("lower-case", provider, &lower);

    Ok(lower)
}

fn check_subject(subject: &str) -> Result<(), BrokenRule> {
    if subject.is_empty() || subject.len() > MAX_SUBJECT {
        return Err(Rule::SocialSubjectLength.into());
    }
    match subject.chars().position(char::is_control) {
        Some(position) => Err(Rule::SocialSubjectControl.at(position)),
        None => Ok(()),
    }
}
