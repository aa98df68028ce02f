//! Times as other programs write them.

use polynym_proto::time;
use prost_types::Timestamp;
use serde_json::Value;

/// A time in JSON: milliseconds since 1970, as a number or its digits, or a text of RFC 3339.
pub fn from_json(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Number(number) => from_millis(number.as_i64()?),
        Value::String(text) => {
            text.parse().ok().map_or_else(|| time::parse(text.trim()), from_millis)
        }
        _ => None,
    }
}

/// The time of milliseconds since 1970.
fn from_millis(millis: i64) -> Option<Timestamp> {
    let nanos = i32::try_from(millis.rem_euclid(1_000)).ok()? * 1_000_000;
    let seconds = millis.div_euclid(1_000);
    // The year 9999.
    (seconds.unsigned_abs() < 253_402_300_800).then_some(Timestamp { seconds, nanos })
}

/// A generalized time of LDAP (RFC 4517), such as `20210304101112Z` or `20210304101112.0Z`; or a
/// basic form of ISO 8601, as vCards have, such as `20210304T101112Z`.
pub fn from_digits(text: &str) -> Option<Timestamp> {
    if !text.is_ascii() {
        return None;
    }
    let (date, rest) = text.split_at_checked(8)?;
    let rest = rest.strip_prefix('T').unwrap_or(rest);
    let (clock, offset) = rest.split_at_checked(6)?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(date) || !is_number(clock) {
        return None;
    }
    let (year, month, day) = (&date[..4], &date[4..6], &date[6..]);
    let (hours, minutes, seconds) = (&clock[..2], &clock[2..4], &clock[4..]);
    let (fraction, offset) = match offset.strip_prefix(['.', ',']) {
        Some(rest) => rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?),
        None => ("0", offset),
    };
    let offset = match (offset.get(..1)?, offset.get(1..)?) {
        ("Z", "") => "Z".to_owned(),
        (sign, digits) if digits.len() == 4 => format!("{sign}{}:{}", &digits[..2], &digits[2..]),
        _ => return None,
    };
    time::parse(&format!("{year}-{month}-{day}T{hours}:{minutes}:{seconds}.{fraction}{offset}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_several_forms() {
        let at = Some(Timestamp { seconds: 1_614_852_672, nanos: 0 });
        assert_eq!(from_json(&Value::from(1_614_852_672_000_i64)), at);
        assert_eq!(from_json(&Value::from("1614852672000")), at);
        assert_eq!(from_json(&Value::from("2021-03-04T10:11:12Z")), at);
        for text in
            ["20210304101112Z", "20210304101112.0Z", "20210304T101112Z", "20210304121112+0200"]
        {
            assert_eq!(from_digits(text), at, "{text}");
        }
        for text in ["", "2021", "20210304", "20210304101112", "20211304101112Z", "2021030410111é"]
        {
            assert_eq!(from_digits(text), None, "{text}");
        }
        assert_eq!(from_json(&Value::from(i64::MIN)), None);
        assert_eq!(from_json(&Value::from(true)), None);
    }
}
