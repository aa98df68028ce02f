//! Pasted texts: the identifiers that a text may name, in the forms in which people copy them.

use crate::canonical::Identifier;
use crate::email::email_within;
use crate::phone::is_international;
use crate::raw::RawIdentifier;
use crate::unicode::{CharacterIssue, character_issue};

/// The maximum number of readings of one identifier: a national number has one for each region.
const MAX_READINGS: usize = 8;
/// The maximum number of identifiers of a list, and of readings of a text.
pub const MAX_LISTED: usize = 100;
/// The minimum number of digits of a telephone number.
const MIN_DIGITS: usize = 5;
/// The maximum number of digits of an extension.
const MAX_EXTENSION: usize = 7;
const NO_REGION: &[&str] = &[""];
/// Pairs of signs that enclose a copied text.
const PAIRS: [[char; 2]; 7] =
    [['<', '>'], ['(', ')'], ['[', ']'], ['"', '"'], ['\'', '\''], ['“', '”'], ['„', '“']];

/// The identifiers that a text names: one, read in each way in which it is valid, or several that
/// commas, semicolons, lines or spaces separate. Numbers in national form are of each of `regions`.
///
/// ```
/// use polynym_identifier::pasted::identifiers;
///
/// let texts = |text| {
///     identifiers(text, &["US"]).iter().map(ToString::to_string).collect::<Vec<_>>()
/// };
/// assert_eq!(texts("Ann Lee <ann@example.com>"), ["email:ann@example.com"]);
/// assert_eq!(texts("(415) 555-2671 ext. 12"), ["phone/US:(415) 555-2671"]);
/// assert_eq!(texts("ann@example.com, @joe"), ["email:ann@example.com", "handle:@joe"]);
/// assert_eq!(texts("Ann Lee"), [""; 0]);
/// ```
pub fn identifiers<'a>(text: &'a str, regions: &[&'a str]) -> Vec<RawIdentifier<'a>> {
    let list = listed(text, regions);
    let parts = match list.is_empty() {
        true => &[text][..],
        false => &list[..list.len().min(MAX_LISTED)],
    };
    let all: Vec<_> = parts.iter().map(|part| readings(part, regions)).collect();
    let ranks = 0..MAX_READINGS;
    let found = ranks.flat_map(|rank| all.iter().filter_map(move |own| own.get(rank).copied()));
    found.take(MAX_LISTED).collect()
}

/// The parts of a list of two identifiers or more, which commas, semicolons, lines or spaces
/// separate. Empty if the text is one identifier, or one of the first [`MAX_LISTED`] parts is none.
///
/// ```
/// use polynym_identifier::pasted::listed;
///
/// assert_eq!(listed("ann@example.com, @joe", &[]), ["ann@example.com", " @joe"]);
/// assert!(listed("ann@example.com", &[]).is_empty());
/// assert!(listed("ann@example.com, or so", &[]).is_empty());
/// ```
pub fn listed<'a>(text: &'a str, regions: &[&'a str]) -> Vec<&'a str> {
    if text.contains(is_list_separator)
        && let Some(parts) = several(text, is_list_separator, regions)
    {
        return parts;
    }
    match readings(text, regions).is_empty() {
        true => several(text, char::is_whitespace, regions).unwrap_or_default(),
        false => Vec::new(),
    }
}

/// The words of a text beside its addresses, such as the name of a copied `Name <address>`.
///
/// ```
/// use polynym_identifier::pasted::name_beside;
///
/// assert_eq!(name_beside("\"Lee, Ann\" <ann@example.com>"), "Lee Ann");
/// assert_eq!(name_beside("ann@example.com, @joe"), "");
/// ```
pub fn name_beside(text: &str) -> String {
    let before = text.rsplit_once('<').map_or(text, |(before, _)| before);
    let words = before.split(|c: char| c.is_whitespace() || ",;\"“”„".contains(c));
    let words = words.filter(|word| !word.is_empty() && !word.contains('@'));
    words.collect::<Vec<_>>().join(" ")
}

/// The parts of a list. None if it has one part only, or one of the first is no identifier.
fn several<'a>(
    text: &'a str,
    is_separator: fn(char) -> bool,
    regions: &[&'a str],
) -> Option<Vec<&'a str>> {
    let parts = text.split(is_separator).filter(|part| !part.trim().is_empty());
    let parts: Vec<_> = parts.collect();
    let is_list = parts.len() > 1
        && parts.iter().take(MAX_LISTED).all(|part| !readings(part, regions).is_empty());
    is_list.then_some(parts)
}

/// The readings of a text that names one identifier, the likeliest first: all are valid. Numbers in
/// national form are of each of `regions`.
pub fn readings<'a>(text: &'a str, regions: &[&'a str]) -> Vec<RawIdentifier<'a>> {
    let bare = bare(text);
    let forms = [Some(text), Some(bare), without_extension(bare)];
    let valid = |text| {
        let mut candidates = candidates(text, regions);
        candidates.retain(|raw| Identifier::parse(*raw).is_ok());
        candidates
    };
    forms.into_iter().flatten().map(valid).find(|found| !found.is_empty()).unwrap_or_default()
}

/// The identifiers that a word may name without looking like one: an account, as in
/// `github:583231`, and a handle without its `@`.
///
/// ```
/// use polynym_identifier::pasted::guesses;
///
/// let texts = |text| guesses(text).iter().map(ToString::to_string).collect::<Vec<_>>();
/// assert_eq!(texts("joe"), ["handle:joe"]);
/// assert_eq!(texts("github:583231"), ["social:github/583231", "handle:github:583231"]);
/// ```
pub fn guesses(text: &str) -> Vec<RawIdentifier<'_>> {
    let word = bare(text);
    if word.contains(char::is_whitespace) || RawIdentifier::from_text(word).is_ok() {
        return Vec::new();
    }
    let account = word.split_once(':');
    let account = account.map(|(provider, subject)| RawIdentifier::Social { provider, subject });
    let guesses = account.into_iter().chain([RawIdentifier::Handle(word)]);
    guesses.filter(|raw| Identifier::parse(*raw).is_ok()).collect()
}

/// Whether a text looks like a phone number in national form.
pub fn is_national_number(text: &str) -> bool {
    let candidates = candidates(text, &[""]);
    matches!(candidates[..], [RawIdentifier::Phone { number, .. }] if !is_international(number))
}

/// The identifiers that a text may be, valid or not, the likeliest first.
fn candidates<'a>(text: &'a str, regions: &[&'a str]) -> Vec<RawIdentifier<'a>> {
    if let Some(address) = email_within(text) {
        return vec![RawIdentifier::Email(address)];
    }
    match RawIdentifier::from_text(text) {
        Ok(RawIdentifier::Phone { number, region: "" }) => return numbers(number, regions),
        Ok(raw) => return vec![raw],
        Err(_) => {}
    }
    if text.contains("://") {
        return vec![RawIdentifier::Url(text)];
    }
    if text.starts_with('@') {
        return vec![RawIdentifier::Handle(text)];
    }
    if let Some((before, _)) = text.split_once('@') {
        let is_below = before.contains('/');
        let url = is_below.then_some(RawIdentifier::Url(text));
        return url.into_iter().chain([RawIdentifier::Email(text)]).collect();
    }
    let digits = text.chars().filter(|c| c.is_numeric()).count();
    if digits >= MIN_DIGITS && (is_international(text) || text.chars().all(is_of_number)) {
        return numbers(text, regions);
    }
    match text.split_once('/') {
        Some((host, _)) if host.contains('.') => vec![RawIdentifier::Url(text)],
        Some((provider, subject)) if !text.contains(' ') => {
            vec![RawIdentifier::Social { provider, subject }]
        }
        _ => Vec::new(),
    }
}

/// A number: in international form once, in national form in each region.
fn numbers<'a>(number: &'a str, regions: &[&'a str]) -> Vec<RawIdentifier<'a>> {
    let regions = match regions {
        [] => NO_REGION,
        all if is_international(number) => &all[..1],
        all => all,
    };
    regions.iter().map(|&region| RawIdentifier::Phone { number, region }).collect()
}

/// Whether a character is one of a number as people write it.
fn is_of_number(c: char) -> bool {
    c.is_numeric() || " +-().\u{a0}/".contains(c) || character_issue(c).is_some()
}

/// Whether a character separates the identifiers of a list.
fn is_list_separator(c: char) -> bool {
    matches!(c, ',' | ';' | '\n' | '\r' | '\t')
}

/// Strips spaces, invisible characters, the punctuation of a sentence and one enclosing pair.
fn bare(text: &str) -> &str {
    let is_around =
        |c: char| c.is_whitespace() || character_issue(c) == Some(CharacterIssue::Invisible);
    let is_end = |c: char| is_around(c) || ".,;:!?…".contains(c);
    let text = text.trim_start_matches(is_around).trim_end_matches(is_end);
    let inner = PAIRS.iter().find_map(|[open, close]| {
        text.strip_prefix(*open)?.strip_suffix(*close).filter(|inner| !inner.contains(*open))
    });
    inner.unwrap_or(text).trim()
}

/// A number without its extension, as in `+1 415 555 2671 ext. 12`. None if it has none.
fn without_extension(text: &str) -> Option<&str> {
    let start = text.find(char::is_numeric)?;
    let at = start + text[start..].find(|c: char| !is_of_number(c))?;
    let (number, extension) = text.split_at(at);
    let count = |text: &str| text.chars().filter(|c| c.is_numeric()).count();
    let is_sign = |c: char| c.is_numeric() || " extEXTｘ.:=#＃;,".contains(c);
    let has_extension = extension.chars().all(is_sign)
        && (1..=MAX_EXTENSION).contains(&count(extension))
        && extension.ends_with(char::is_numeric);
    (has_extension && count(number) >= MIN_DIGITS).then(|| number.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, regions: &[&str]) -> Vec<String> {
        let canonical = |raw: &RawIdentifier<'_>| Identifier::parse(*raw).unwrap().to_string();
        identifiers(text, regions).iter().map(canonical).collect()
    }

    #[test]
    fn what_people_copy_is_read() {
        for (text, expected) in [
            ("joe@example.com.", "email:joe@example.com"),
            ("<joe@example.com>", "email:joe@example.com"),
            ("\"joe@example.com\";", "email:joe@example.com"),
            ("\u{200b}joe@example.com\u{feff}", "email:joe@example.com"),
            ("mailto:joe@example.com?subject=Hi", "email:joe@example.com"),
            ("tel:+1-415-555-2671", "phone:+14155552671"),
            ("+1 415 555 2671 ext. 12", "phone:+14155552671"),
            ("(415) 555-2671 x12", "phone:+14155552671"),
            ("+١ ٤١٥ ٥٥٥ ٢٦٧١", "phone:+14155552671"),
            ("(https://x.com/joe)", "url:https://x.com/joe"),
            ("linkedin.com/in/Ann-Lee", "url:https://www.linkedin.com/in/ann-lee"),
            ("Joe Smith", ""),
            ("joe", ""),
        ] {
            let expected = Some(expected).filter(|text| !text.is_empty());
            let found = texts(text, &["US"]);
            assert_eq!(found.first().map(String::as_str), expected, "{text}");
        }
    }

    #[test]
    fn several_identifiers_are_each_read() {
        let expected = ["email:ann@example.com", "email:joe@example.com"];
        for text in [
            "ann@example.com, joe@example.com",
            "Ann <ann@example.com>; Joe <joe@example.com>",
            "ann@example.com joe@example.com",
            "ann@example.com\r\njoe@example.com\r\n",
        ] {
            assert_eq!(texts(text, &[]), expected, "{text}");
        }
        assert_eq!(texts("ann@example.com or so", &[]), [""; 0]);
        let many: Vec<_> = (0..120).map(|n| format!("a{n}@example.com")).collect();
        for separator in [" ", ", ", "\n"] {
            let many = many.join(separator);
            let all = texts(&many, &[]);
            assert_eq!((all.len(), &*all[99]), (MAX_LISTED, "email:a99@example.com"));
            assert_eq!(listed(&many, &[]).len(), 120);
        }
        let numbers = "030 1234567; ".repeat(90);
        assert_eq!(texts(&numbers, &["DE", "AT", "CH", "FR"]).len(), MAX_LISTED);
    }

    #[test]
    fn a_national_number_is_read_in_each_region_that_has_it() {
        assert_eq!(texts("030 1234567", &[]), [""; 0]);
        let both = texts("030 1234567", &["DE", "AT"]);
        assert_eq!(both.first().map(String::as_str), Some("phone:+49301234567"));
        assert!(both[1..].iter().all(|text| text.starts_with("phone:+43")), "{both:?}");
        for text in ["(415) 555-2671", "030 123456", "0171/5551234"] {
            assert!(is_national_number(text), "{text}");
        }
        for text in ["+1 415 555 2671", "phone:+14155552671", "joe", "1234", "@4155552671"] {
            assert!(!is_national_number(text), "{text}");
        }
    }

    #[test]
    fn words_are_guessed_to_be_handles_and_accounts() {
        let texts = |text| guesses(text).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(texts(" Joe, "), ["handle:Joe"]);
        assert_eq!(texts("Joe Smith"), [""; 0]);
        assert_eq!(texts("email:joe@example.com"), [""; 0]);
    }
}
