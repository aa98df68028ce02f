//! Texts as values of attributes by which a tenant finds users.

use super::way::{Reading, Search, Way};
use crate::model::attribute_definition::{AttributeDefinition, ValueType};
use crate::model::policies::Policies;
use crate::search::{Filter, Scalar, ScalarRef};
use unicode_normalization::UnicodeNormalization;

/// The attributes whose values are compared with a text.
pub(super) const MAX_ATTRIBUTES: usize = 8;
/// The minimum number of characters of the start of a value.
const MIN_START: usize = 3;
/// The maximum number of words before a number that say what it is.
const MAX_LABEL_WORDS: usize = 3;

/// The searches for values of attributes by which the tenant finds users: the text, and the number
/// in it behind a word such as `No.`.
pub(super) fn attributes(text: &str, policies: &Policies) -> Vec<Search> {
    let texts = [Some(text), numbered(text)].into_iter().flatten();
    texts.flat_map(|text| whole_values(text, policies)).collect()
}

/// The number behind a word or a sign that says what it is, as in `Customer No. K-1070` and
/// `#1070`. None if the text has no such form.
fn numbered(text: &str) -> Option<&str> {
    let at = text.find(|c: char| c.is_numeric())?;
    let begin = text[..at].rfind(|c: char| c.is_whitespace() || ":#№".contains(c))?;
    let (label, number) = text.split_at_checked(begin)?;
    let number = number.trim_start_matches(|c: char| c.is_whitespace() || ":#№".contains(c));
    let is_label = |c: char| c.is_alphabetic() || c.is_whitespace() || ".-:#№".contains(c);
    let is_short = label.split_whitespace().nth(MAX_LABEL_WORDS).is_none();
    let is_one = !number.contains(char::is_whitespace);
    (label.chars().all(is_label) && is_short && is_one).then_some(number)
}

fn whole_values(text: &str, policies: &Policies) -> Vec<Search> {
    if text.is_empty() || !ScalarRef::Text(text).is_searched() {
        return Vec::new();
    }
    let search = |(name, definition): (&str, &AttributeDefinition)| {
        let reading = Reading { attribute: name.to_owned(), ..Reading::new(Way::Attribute, text) };
        let values = Some(values(text, definition)).filter(|values| !values.is_empty())?;
        Some(Search::new(reading, Filter::of_attribute(name, values)))
    };
    policies.found_by().take(MAX_ATTRIBUTES).filter_map(search).collect()
}

/// The searches for starts of texts of attributes by which the tenant finds users.
pub(super) fn attribute_starts(text: &str, policies: &Policies) -> Vec<Search> {
    let is_long = text.chars().nth(MIN_START - 1).is_some();
    if !is_long || text.contains(char::is_whitespace) || !ScalarRef::Text(text).is_searched() {
        return Vec::new();
    }
    let search = |(name, definition): (&str, &AttributeDefinition)| {
        let whole = values(text, definition);
        let starts = whole.iter().filter_map(|value| match value {
            Scalar::String(start) => Some(start.clone()),
            _ => None,
        });
        let starts = Some(starts.collect::<Vec<_>>()).filter(|starts| !starts.is_empty())?;
        let filter = Filter::of_attribute_starts(name, &starts);
        let attribute = name.to_owned();
        let reading = Reading { attribute, ..Reading::new(Way::AttributeStart, text) };
        Some(Search::new(reading, filter.excluding([&Filter::of_attribute(name, whole)])))
    };
    policies.found_by().take(MAX_ATTRIBUTES).filter_map(search).collect()
}

/// The values of an attribute as which a text can be read.
fn values(text: &str, definition: &AttributeDefinition) -> Vec<Scalar> {
    let number = || {
        let whole = text.parse().ok().map(Scalar::Int);
        let real = text.parse().ok().filter(|real: &f64| real.is_finite()).map(Scalar::Double);
        whole.or(real)
    };
    let spellings = [text.to_owned(), text.to_lowercase(), text.to_uppercase()];
    let forms = |text: &String| [text.nfc().collect(), text.nfd().collect()];
    let texts = spellings.iter().flat_map(forms).map(Scalar::String);
    match definition.value_type {
        None => texts.chain(number()).collect(),
        Some(ValueType::String | ValueType::List) => texts.collect(),
        Some(ValueType::Int | ValueType::Double) => number().into_iter().collect(),
        Some(ValueType::Bool | ValueType::Time) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_behind_what_it_is_called() {
        for (text, number) in [
            ("Kundennummer K-20002", Some("K-20002")),
            ("Kd-Nr. 50017", Some("50017")),
            ("Customer No.: 50017", Some("50017")),
            ("Nr.50017", None),
            ("#50017", Some("50017")),
            ("№ 50017", Some("50017")),
            ("50017", None),
            ("K-20002", None),
            ("Joe Smith", None),
            ("order 7 of 9", None),
            ("a b c d 50017", None),
            ("2nd 50017", None),
        ] {
            assert_eq!(numbered(text), number, "{text}");
        }
    }
}
