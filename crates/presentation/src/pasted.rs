//! Reads a text that somebody pastes as an identifier of the kind that it looks like.

use polynym_identifier::{
    Identifier, RawIdentifier, character_issue, email_within, is_international,
};

/// The identifier that a text looks like, if one: the likeliest that is valid. Numbers in national
/// form are of `region`.
pub fn identifier<'a>(text: &'a str, region: &'a str) -> Option<RawIdentifier<'a>> {
    candidates(text, region).into_iter().find(|raw| Identifier::parse(*raw).is_ok())
}

/// Whether a text looks like a phone number in national form.
pub fn is_national_number(text: &str) -> bool {
    let candidates = candidates(text, "");
    matches!(candidates[..], [RawIdentifier::Phone { number, .. }] if !is_international(number))
}

/// The identifiers that a text may be, the likeliest first.
fn candidates<'a>(text: &'a str, region: &'a str) -> Vec<RawIdentifier<'a>> {
    if let Some(address) = email_within(text) {
        return vec![RawIdentifier::Email(address)];
    }
    if let Ok(raw) = RawIdentifier::from_text(text) {
        return vec![raw];
    }
    if text.contains("://") {
        return vec![RawIdentifier::Url(text)];
    }
    if is_filter(text) {
        return Vec::new();
    }
    if text.starts_with('@') {
        return vec![RawIdentifier::Handle(text)];
    }
    if let Some((before, _)) = text.split_once('@') {
        let is_below = before.contains('/');
        let url = is_below.then_some(RawIdentifier::Url(text));
        return url.into_iter().chain([RawIdentifier::Email(text)]).collect();
    }
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let is_sign = |c| " +-().\u{a0}/".contains(c) || character_issue(c).is_some();
    let is_number = |c: char| c.is_ascii_digit() || is_sign(c);
    if digits >= 5 && (is_international(text) || text.chars().all(is_number)) {
        return vec![RawIdentifier::Phone { number: text, region }];
    }
    match text.split_once('/') {
        Some((host, _)) if host.contains('.') => vec![RawIdentifier::Url(text)],
        Some((provider, subject)) if !text.contains(' ') => {
            vec![RawIdentifier::Social { provider, subject }]
        }
        _ => Vec::new(),
    }
}

/// Whether a text has an operator of the filter language.
pub fn is_filter(text: &str) -> bool {
    const FIELDS: [&str; 8] = [
        "state",
        "display_name",
        "attributes.",
        "identities",
        "create_time",
        "update_time",
        "NOT ",
        "words",
    ];
    let has_operator = text.contains(['=', '<', '>']) || text.contains(':');
    has_operator && (FIELDS.iter().any(|field| text.contains(field)) || text.contains(" = "))
}

/// Whether a text may be a region, such as `US`.
pub fn is_region(text: &str) -> bool {
    text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_national_number_is_one_without_a_country() {
        for text in ["(415) 555-2671", "030 123456", "0171/5551234"] {
            assert!(is_national_number(text), "{text}");
        }
        for text in ["+1 415 555 2671", "phone:+14155552671", "joe", "1234", "@4155552671"] {
            assert!(!is_national_number(text), "{text}");
        }
        assert!(identifier("(415) 555-2671", "").is_none());
        let us = identifier("(415) 555-2671", "US").unwrap();
        assert_eq!(us.to_string(), "phone/US:(415) 555-2671");
    }
}
