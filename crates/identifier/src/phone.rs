//! Telephone numbers: parses any usual notation into E.164. The numbering plans are in
//! `phone_metadata`.

use std::borrow::Cow;
use std::str::FromStr;

use phonenumber::country::Id;

use super::phone_parse::{self, Dialling};
use super::rejection::{BrokenRule, Rule};
use super::trace::Trace;
use super::unicode::{CharacterIssue, character_issue};

/// The maximum digits: E.164's fifteen, an international prefix and a carrier code.
const MAX_DIGITS: usize = 32;

/// The minimum digits of a number before an extension.
const MIN_DIGITS: usize = 4;

/// The zeros of the decimal digits that people type numbers with: ASCII, Arabic-Indic, extended
/// Arabic-Indic, NKo, the scripts of India, Thai, Lao, Tibetan, Myanmar, Khmer, and full width.
const ZEROS: [char; 19] = [
    '0', '٠', '۰', '߀', '०', '০', '੦', '૦', '୦', '௦', '౦', '೦', '൦', '๐', '໐', '༠', '၀', '០', '０',
];

/// The scheme of a telephone number as a URI (RFC 3966), which SCIM sends.
const SCHEME: &str = "tel:";
/// The parameter of such a URI with the leading digits of a local number.
const CONTEXT: &str = ";phone-context=";
/// The minimum and the maximum digits of a number in E.164.
const E164_DIGITS: std::ops::RangeInclusive<usize> = 4..=15;

pub(super) fn canonical(
    number: &str,
    region: &str,
    trace: &mut impl Trace,
) -> Result<String, BrokenRule> {
    let start = number.trim_start_matches(is_around);
    let marks = number.chars().count() - start.chars().count();
    let bare = start.trim_end_matches(is_around);
    trace.step("marks", number, bare);
    e164(bare, region, trace).map_err(|broken| broken.shifted(Some(marks)))
}

/// The canonical form of a number without marks around it.
fn e164(number: &str, region: &str, trace: &mut impl Trace) -> Result<String, BrokenRule> {
    let country = known_region(region)?;
    check_decimal(number)?;
    let global = without_scheme(number);
    trace.step("tel-uri", number, &global);
    let offset = match &global {
        Cow::Borrowed(rest) => Some(number.len() - rest.len()),
        Cow::Owned(_) => None,
    };
    let digits = dialled_digits(&global).map_err(|broken| broken.shifted(offset))?;
    trace.step("digits", &global, &digits);
    let e164 = match (digits.strip_prefix('+'), country) {
        (Some(international), _) => phone_parse::international(international),
        (None, Some(id)) => phone_parse::unambiguous(&digits, id).map_err(BrokenRule::ambiguous)?,
        (None, None) => return Err(Rule::PhoneRegionMissing.into()),
    }
    .ok_or(Rule::PhoneNumber)?;
    trace.step("e164", &digits, &e164);
    Ok(e164)
}

/// The digits of a number in international form, whatever the numbering plans say: the form under
/// which older plans may have stored it.
pub(super) fn plain_e164(number: &str) -> Option<String> {
    let digits = dialled_digits(&plain(number)).ok()?;
    let is_e164 = digits
        .strip_prefix('+')
        .is_some_and(|digits| E164_DIGITS.contains(&digits.len()) && !digits.starts_with('0'));
    is_e164.then_some(digits)
}

/// How a telephone number is dialled in a region, such as `DE`. `None` if either is malformed.
///
/// ```
/// use polynym_identifier::{Dialling, dialling};
///
/// assert_eq!(dialling("+49 30 1234567", "DE"), Some(Dialling::International));
/// assert_eq!(dialling("030 1234567", "DE"), Some(Dialling::National));
/// assert_eq!(dialling("612 34 56 78", "DE"), Some(Dialling::WithoutPrefix));
/// assert_eq!(dialling("612 34 56 78", "ES"), Some(Dialling::National));
/// ```
pub fn dialling(number: &str, region: &str) -> Option<Dialling> {
    let digits = dialled_digits(&plain(number)).ok()?;
    phone_parse::dialling(&digits, known_region(region).ok()??)
}

/// Whether a text is the code of a region that has telephone numbers, in capitals, such as `DE`.
pub fn is_region(text: &str) -> bool {
    let is_code = text.bytes().all(|byte| byte.is_ascii_uppercase());
    is_code && matches!(known_region(text), Ok(Some(_)))
}

/// The digits of a start or an end of a number. `None` if it has other characters.
pub(super) fn dialled_part(typed: &str) -> Option<String> {
    dialled_digits(&plain(typed)).ok()
}

/// Whether a telephone number is in international form: its first sign is a plus, after marks of
/// direction, punctuation and the scheme of a `tel:` URI. It needs no region.
///
/// ```
/// use polynym_identifier::is_international;
///
/// assert!(is_international("tel:+33-6-12-34-56-78"));
/// assert!(is_international("\u{202a}(+33) 6 12 34 56 78\u{202c}"));
/// assert!(!is_international("06 12 34 56 78"));
/// ```
pub fn is_international(number: &str) -> bool {
    plain(number).trim_start_matches(is_separator).starts_with(['+', '＋'])
}

/// The number without what is around it: marks, spaces, and the scheme of a `tel:` URI.
fn plain(number: &str) -> Cow<'_, str> {
    without_scheme(number.trim_matches(is_around))
}

/// Whether a character around a number is dropped: a space, or an invisible one, as address books
/// and messengers put around the numbers that people copy.
fn is_around(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}') || character_issue(c) == Some(CharacterIssue::Invisible)
}

fn has_scheme(number: &str) -> bool {
    number.get(..SCHEME.len()).is_some_and(|start| start.eq_ignore_ascii_case(SCHEME))
}

/// The number of a `tel:` URI: a local number after its context. Other text is unchanged.
fn without_scheme(number: &str) -> Cow<'_, str> {
    if !has_scheme(number) {
        return number.into();
    }
    let number = &number[SCHEME.len()..];
    match number.split_once(CONTEXT) {
        Some((local, context)) if context.starts_with('+') && !local.starts_with('+') => {
            format!("{context}{local}").into()
        }
        _ => number.into(),
    }
}

/// Rejects a decimal `.0` at the end: a spreadsheet read the number as a fraction.
fn check_decimal(number: &str) -> Result<(), BrokenRule> {
    let mut chars = number.trim_end().chars().rev();
    let is_zero = chars.next().is_some_and(|c| decimal_digit(c) == Some('0'));
    let is_point = chars.next().is_some_and(|c| matches!(c, '.' | '．'));
    match is_zero && is_point && chars.next().is_some_and(|c| decimal_digit(c).is_some()) {
        true => Err(Rule::PhoneDecimal.at(number.trim_end().chars().count() - 2)),
        false => Ok(()),
    }
}

fn known_region(region: &str) -> Result<Option<Id>, BrokenRule> {
    if region.is_empty() {
        return Ok(None);
    }
    Id::from_str(&region.to_ascii_uppercase())
        .ok()
        .filter(|&id| phone_parse::has_region(id))
        .map(Some)
        .ok_or_else(|| Rule::PhoneRegion.into())
}

/// The digits in ASCII, after a leading plus, if any.
fn dialled_digits(number: &str) -> Result<String, BrokenRule> {
    let mut dialled = String::with_capacity(number.len().min(MAX_DIGITS + 1));
    for (position, c) in number.chars().enumerate() {
        if let Some(digit) = decimal_digit(c) {
            dialled.push(digit);
        } else if matches!(c, '+' | '＋') {
            if !dialled.is_empty() {
                return Err(Rule::PhonePlus.at(position));
            }
            dialled.push('+');
        } else if !is_separator(c) {
            return Err(invalid_character(c, dialled.len()).at(position));
        }
        if dialled.len() > MAX_DIGITS {
            return Err(Rule::PhoneNumber.into());
        }
    }

    Ok(dialled)
}

fn decimal_digit(c: char) -> Option<char> {
    ZEROS.iter().find_map(|&zero| {
        let value = u32::from(c).checked_sub(u32::from(zero))?;
        char::from_digit(value, 10)
    })
}

/// Whether libphonenumber treats a character as punctuation, or it is a direction mark, as copied
/// from address books.
const fn is_separator(c: char) -> bool {
    matches!(c, ' ' | '-' | '.' | '/' | '(' | ')' | '[' | ']' | '~' | '\t'
        | '\u{a0}' | '\u{ad}' | '\u{61c}' | '\u{2000}'..='\u{2015}' | '\u{202a}'..='\u{202f}' | '\u{2053}'
        | '\u{2060}' | '\u{2066}'..='\u{2069}' | '\u{2212}' | '\u{223c}' | '\u{3000}' | '\u{30fc}'
        | '\u{feff}' | '\u{ff08}' | '\u{ff09}' | '\u{ff0d}'..='\u{ff0f}' | '\u{ff3b}' | '\u{ff3d}' | '\u{ff5e}')
}

/// The rule that an invalid character breaks.
fn invalid_character(c: char, digits_before: usize) -> Rule {
    let extends = matches!(c, '#' | ';' | ',' | 'x' | 'X' | 'e' | 'E' | 'ｘ' | '＃');
    if extends && digits_before >= MIN_DIGITS {
        Rule::PhoneExtension
    } else if c.is_alphabetic() {
        Rule::PhoneLetter
    } else {
        Rule::PhoneCharacter
    }
}
