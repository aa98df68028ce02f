//! The value of an attribute in a cell.

use polynym_presentation::state;
use polynym_proto::v1::attribute_value::Kind;
use polynym_proto::v1::{State, StringList};

use crate::field::ValueType;
use crate::locale::Locale;
use crate::{numbers, times};

/// The separator of a list's items, unless the mapping names one.
const LIST_SEPARATOR: char = ';';

/// The value of a cell.
///
/// # Errors
/// The cell has no such value: in words.
pub fn value(
    value_type: ValueType,
    cell: &str,
    separator: Option<char>,
    locale: &Locale,
) -> Result<Kind, String> {
    let number = || numbers::plain(cell, locale);
    let not = |what: &str| format!("is not {what}");
    if matches!(value_type, ValueType::Int) && numbers::is_rounded(cell) {
        return Err(rounded(cell));
    }
    if matches!(value_type, ValueType::Int | ValueType::Double)
        && numbers::is_ambiguous(cell, locale)
    {
        let (one, other) = (cell.replace(',', ""), cell.replace(',', "."));
        return Err(format!("{cell}: {one} or {other}? add --locale, such as en-US or de"));
    }
    Ok(match value_type {
        ValueType::String => Kind::StringValue(cell.to_owned()),
        ValueType::Int => {
            let whole = number().and_then(|number| numbers::whole(&number));
            Kind::IntValue(whole.ok_or_else(|| not("a whole number"))?)
        }
        ValueType::Double => {
            let known = cell.parse().ok().filter(|_| locale.decimal == '.');
            let own = || number().and_then(|number| number.parse().ok());
            Kind::DoubleValue(known.or_else(own).ok_or_else(|| not("a number"))?)
        }
        ValueType::Bool => {
            Kind::BoolValue(locale.yes_or_no(cell).ok_or_else(|| not("true or false, yes or no"))?)
        }
        ValueType::Time => Kind::TimeValue(times::parse(cell, locale)?),
        ValueType::List => {
            let values = items(cell, separator.unwrap_or(LIST_SEPARATOR)).map(str::to_owned);
            Kind::ListValue(StringList { values: values.collect() })
        }
    })
}

/// The items of a cell, without white space around them. Empty ones are left out.
pub fn items(cell: &str, separator: char) -> impl Iterator<Item = &str> {
    cell.split(separator).map(str::trim).filter(|item| !item.is_empty())
}

/// The error of a number that a spreadsheet has rounded.
pub fn rounded(cell: &str) -> String {
    format!(
        "Excel turned this number into {cell}, and the last digits are lost: format the column as \
         text, and export it again"
    )
}

/// The error of an id that a program has made a number.
pub fn float(cell: &str) -> String {
    format!(
        "{cell}: a program has made a number of this id; format the column as text, and export it \
         again"
    )
}

/// The state of a user in a cell.
///
/// # Errors
/// There is no such state: in words.
pub fn state(cell: &str) -> Result<State, String> {
    state::parse(cell)
        .filter(|state| matches!(state, State::Active | State::Disabled))
        .ok_or_else(|| format!("{cell}: the state must be active or disabled"))
}
