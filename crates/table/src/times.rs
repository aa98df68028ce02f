//! Dates and times as people type them. A date is the midnight in UTC at which it begins.

use prost_types::Timestamp;

use crate::locale::{DateOrder, Locale};

/// The time in a cell.
///
/// # Errors
/// It is no time, or not one instant: in words.
pub fn parse(cell: &str, locale: &Locale) -> Result<Timestamp, String> {
    if let Some(time) = polynym_proto::time::parse(cell) {
        return Ok(time);
    }
    let (date, time) = match cell.split_once([' ', 'T']) {
        Some((date, time)) => (date, time.trim()),
        None => (cell.trim_end_matches('.'), ""),
    };
    let Some(date) = iso_date(date, locale)? else {
        return Err(format!("{cell}: is no date, as 2026-01-31, or time, as 2026-01-31T12:00:00Z"));
    };
    let time = match time.len() {
        0 => "00:00:00Z".to_owned(),
        _ if !time.ends_with(['Z', 'z']) && !time.contains(['+', '-']) => {
            return Err(format!(
                "{cell}: a time of day needs Z or an offset, as in {date}T12:00:00Z"
            ));
        }
        _ => time.to_owned(),
    };
    let parsed = polynym_proto::time::parse(&format!("{date}T{time}"));
    parsed.ok_or_else(|| format!("{cell}: there is no such date or time"))
}

/// The date in the form of ISO 8601. None if the text has another form.
fn iso_date(text: &str, locale: &Locale) -> Result<Option<String>, String> {
    let parts: Vec<_> = text.split(['.', '/', '-']).collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let &[first, second, third] = &*parts else { return Ok(None) };
    if !parts.iter().all(is_number) {
        return Ok(None);
    }
    let order = if first.len() == 4 { Some(DateOrder::YearFirst) } else { locale.date_order };
    let (year, month, day) = match order {
        Some(DateOrder::YearFirst) => (first, second, third),
        Some(DateOrder::DayFirst) => (third, second, first),
        Some(DateOrder::MonthFirst) => (third, first, second),
        None => {
            let advice = "day or month first? add --locale, such as en-GB, en-US or de";
            return Err(format!("{text}: {advice}"));
        }
    };
    if year.len() != 4 {
        return Err(format!("{text}: the year needs four digits"));
    }
    Ok((month.len() <= 2 && day.len() <= 2).then(|| format!("{year}-{month:0>2}-{day:0>2}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locale::NEUTRAL;

    #[test]
    fn dates_have_the_order_of_their_locale() {
        let german = Locale::parse("de").unwrap();
        let american = Locale::parse("en-US").unwrap();
        let wanted = polynym_proto::time::parse("2021-12-04T00:00:00Z").unwrap();
        for (cell, locale) in [
            ("04.12.2021", german),
            ("4.12.2021", german),
            ("12/04/2021", american),
            ("2021-12-04", NEUTRAL),
            ("2021/12/4", german),
            ("04.12.2021 01:00:00+01:00", german),
        ] {
            assert_eq!(parse(cell, &locale), Ok(wanted), "{cell}");
        }
        for (cell, part) in [
            ("04.12.2021", "--locale"),
            ("2021-12-04 10:00:00", "offset"),
            ("2021-02-30", "no such date"),
            ("soon", "is no date"),
        ] {
            let error = parse(cell, &NEUTRAL).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        assert!(parse("04.12.21", &german).unwrap_err().contains("four digits"));
    }
}
