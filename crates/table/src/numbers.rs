//! Numbers as people type them.

use crate::locale::Locale;

/// The signs between groups of three digits, beside the one of the locale: spaces of four kinds and
/// the Swiss apostrophe.
const GROUPING: [char; 6] = [' ', '\u{a0}', '\u{202f}', '\u{2009}', '\'', '\u{2019}'];

/// Whether a spreadsheet has rounded a long number, as in `4.479E+11` or `4,479E+11`.
pub fn is_rounded(cell: &str) -> bool {
    let Some((digits, exponent)) = cell.split_once(['E', 'e']) else { return false };
    let is_number = |text: &str, signs: &[char]| {
        text.starts_with(|c: char| c.is_ascii_digit())
            && text.chars().all(|c| c.is_ascii_digit() || signs.contains(&c))
    };
    exponent.strip_prefix('+').is_some_and(|power| is_number(power, &[]))
        && is_number(digits, &['.', ','])
}

/// Whether a cell is a number to people of different languages, and another one to each: `4,750`,
/// without a locale.
pub fn is_ambiguous(cell: &str, locale: &Locale) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let parts = signed(cell).1.split_once(',').filter(|_| locale.grouping.is_none());
    parts.is_some_and(|(whole, rest)| {
        is_digits(whole) && is_digits(rest) && whole.len() <= 3 && rest.len() == 3
    })
}

/// Whether a program has made a number of an id: `1047.0`.
pub fn is_float(cell: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    cell.strip_suffix(".0").is_some_and(is_digits)
}

/// The whole number in the form that Rust parses; none if it has other decimals than 0.
pub fn whole(number: &str) -> Option<i64> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    decimals.bytes().all(|digit| digit == b'0').then(|| whole.parse().ok()).flatten()
}

/// The sign of a number, and its digits.
fn signed(cell: &str) -> (&'static str, &str) {
    match cell.strip_prefix(['-', '\u{2212}']) {
        Some(rest) => ("-", rest),
        None => ("", cell.strip_prefix('+').unwrap_or(cell)),
    }
}

/// The number in the form that Rust parses; none if the cell is no number, or an ambiguous one.
pub fn plain(cell: &str, locale: &Locale) -> Option<String> {
    if is_ambiguous(cell, locale) {
        return None;
    }
    let (sign, digits) = signed(cell);
    let (whole, decimals) = match digits.rsplit_once(locale.decimal) {
        Some((whole, decimals)) => (whole, Some(decimals)),
        None => (digits, None),
    };
    let whole = ungrouped(whole, locale)?;
    let is_decimal = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match decimals {
        Some(decimals) => is_decimal(decimals).then(|| format!("{sign}{whole}.{decimals}")),
        // 0,750 is less than one, in whatever language.
        None if digits.starts_with('0') && whole != digits => None,
        None => Some(format!("{sign}{whole}")),
    }
}

/// The digits without the signs between groups of three.
fn ungrouped(text: &str, locale: &Locale) -> Option<String> {
    let own = locale.grouping.unwrap_or(',');
    let sign = text.chars().find(|c| !c.is_ascii_digit());
    let is_digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    match sign {
        None => Some(text.to_owned()).filter(|text| !text.is_empty()),
        Some(sign) if sign == own || GROUPING.contains(&sign) => {
            let mut groups = text.split(sign);
            let first = groups.next()?;
            let is_grouped = (1..=3).contains(&first.len())
                && is_digits(first)
                && groups.clone().all(|group| group.len() == 3 && is_digits(group));
            is_grouped.then(|| text.replace(sign, ""))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locale::NEUTRAL;

    #[test]
    fn numbers_have_the_signs_of_their_locale() {
        let german = Locale::parse("de").unwrap();
        for (cell, wanted) in [
            ("1.234,56", Some("1234.56")),
            ("-0,5", Some("-0.5")),
            ("1 234", Some("1234")),
            ("3.5", None),
            ("1.234", Some("1234")),
            ("0.007,50", Some("0007.50")),
            ("0.750", None),
            ("12.34,5", None),
            ("", None),
            ("5,", None),
        ] {
            assert_eq!(plain(cell, &german).as_deref(), wanted, "{cell}");
        }
        assert_eq!(plain("1,234.5", &NEUTRAL).as_deref(), Some("1234.5"));
        assert_eq!(plain("1,5", &NEUTRAL), None);
        let english = Locale::parse("en").unwrap();
        for (cell, neutral, english_one) in [
            ("4,750", None, Some("4750")),
            ("-4,750", None, Some("-4750")),
            ("0,750", None, None),
            ("4,750.5", Some("4750.5"), Some("4750.5")),
            ("1,234,567", Some("1234567"), Some("1234567")),
        ] {
            assert_eq!(plain(cell, &NEUTRAL).as_deref(), neutral, "{cell}");
            assert_eq!(plain(cell, &english).as_deref(), english_one, "{cell}");
        }
        assert!(is_ambiguous("4,750", &NEUTRAL) && !is_ambiguous("4,750", &german));
    }

    #[test]
    fn whole_numbers_may_have_decimals_of_zero() {
        for (number, wanted) in
            [("3.0", Some(3)), ("-3.00", Some(-3)), ("3", Some(3)), ("3.5", None), ("", None)]
        {
            assert_eq!(whole(number), wanted, "{number}");
        }
        assert!(is_float("1047.0") && !is_float("1047") && !is_float("10.5") && !is_float("a.0"));
    }

    #[test]
    fn rounded_numbers_are_told() {
        assert!(is_rounded("4.479E+11") && is_rounded("4,479e+11") && is_rounded("5E+10"));
        assert!(!is_rounded("E+11") && !is_rounded("joe@example.com") && !is_rounded("1E11"));
    }
}
