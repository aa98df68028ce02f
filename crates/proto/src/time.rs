//! Times as people write them: the date and time of RFC 3339, section 5.6.

use prost_types::Timestamp;

/// The seconds of 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;
/// The digits of a fraction that count.
const MAX_DIGITS: usize = 9;

/// Parses `2026-01-31T12:00:00Z`, with `T`, seconds, and `Z` or an offset in hours and minutes.
/// `None` for any other form: a time without an offset is no instant.
pub fn parse(text: &str) -> Option<Timestamp> {
    let (date, rest) = text.split_at_checked(10)?;
    let (time, rest) = rest.strip_prefix(['T', 't'])?.split_at_checked(8)?;
    let (fraction, offset) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?),
        None => ("0", rest),
    };
    let is_time = has_form(date, "0000-00-00") && has_form(time, "00:00:00");
    if !is_time || fraction.is_empty() || !is_offset(offset) {
        return None;
    }

    let fraction = &fraction[..fraction.len().min(MAX_DIGITS)];
    let offset = offset.to_ascii_uppercase();
    let instant: Timestamp = format!("{date}T{time}.{fraction}{offset}").parse().ok()?;
    SECONDS.contains(&instant.seconds).then_some(instant)
}

/// Whether a text has digits where the form has zeros, and the form's signs elsewhere.
fn has_form(text: &str, form: &str) -> bool {
    text.len() == form.len()
        && text.bytes().zip(form.bytes()).all(|(byte, wanted)| match wanted {
            b'0' => byte.is_ascii_digit(),
            _ => byte == wanted,
        })
}

fn is_offset(text: &str) -> bool {
    match text.strip_prefix(['+', '-']) {
        Some(offset) => has_form(offset, "00:00") && &offset[..2] < "24" && &offset[3..] < "60",
        None => matches!(text, "Z" | "z"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_rfc_3339_are_instants() {
        let noon = Timestamp { seconds: 1_769_860_800, nanos: 0 };
        for text in [
            "2026-01-31T12:00:00Z",
            "2026-01-31t12:00:00z",
            "2026-01-31T12:00:00.000Z",
            "2026-01-31T12:00:00+00:00",
            "2026-01-31T12:00:00-00:00",
            "2026-01-31T13:30:00+01:30",
            "2026-01-30T23:00:00-13:00",
            "2026-01-31T12:00:00.0000000004Z",
        ] {
            assert_eq!(parse(text), Some(noon), "{text}");
        }
        let half = parse("2026-01-31T12:00:00.5Z").unwrap();
        assert_eq!((half.seconds, half.nanos), (noon.seconds, 500_000_000));
        for text in ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", "2024-02-29T00:00:00Z"] {
            assert!(parse(text).is_some(), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_instants() {
        for text in [
            "",
            "2026-01-31",
            "2026-01-31T12:00:00",
            "2026-01-31T12:00Z",
            "2026-01-31T12Z",
            "2026-01-31 12:00:00Z",
            "2026-01-31T12:00:00 Z",
            "2026-01-31T12:00:00+01",
            "2026-01-31T12:00:00+0100",
            "2026-01-31T12:00:00+1:00",
            "2026-01-31T12:00:00+24:00",
            "2026-01-31T12:00:00+00:60",
            "2026-01-31T12:00:00.Z",
            "2026-01-31T12:00:00.5",
            "2026-01-31T12:00:00,5Z",
            "2026-01-31T24:00:00Z",
            "2026-01-31T12:60:00Z",
            "2026-02-29T12:00:00Z",
            "2026-13-01T12:00:00Z",
            "2026-1-31T12:00:00Z",
            "20260131T120000Z",
            "+2026-01-31T12:00:00Z",
            "0000-01-01T00:00:00Z",
            "0001-01-01T00:00:00+01:00",
            "9999-12-31T23:59:59-01:00",
            "10000-01-01T00:00:00Z",
            "2026-01-31T12:00:00Zx",
            "２026-01-31T12:00:00Z",
            "1769860800",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
