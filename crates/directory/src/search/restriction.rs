//! The conditions of a filter: the operators and values that each field takes.

use std::ops::Bound;

use winnow::prelude::*;
use winnow::stream::Location;
use winnow::token::take_while;

use super::condition::{Condition, Subject};
use super::element::{MAX_NAME_WORDS, STATES};
use super::fault::SyntaxError;
use super::field::Field;
use super::input::{Input, Parsed, cut};
use super::literal::{Literal, literal};
use super::name::TypedName;
use super::range::Range;
use super::scalar::{Class, Scalar};
use crate::timestamp::Timestamp;
use polynym_identifier::{Kind, RawIdentifier, Rules};
use unicode_normalization::UnicodeNormalization;

/// The maximum size of an attribute's name.
const MAX_NAME_BYTES: usize = 256;

/// A field of a filter.
#[derive(Clone, Debug, PartialEq)]
pub enum Path {
    Field(Field),
    UpdateTime,
    Identities(Kind),
}

/// An operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Equals,
    Differs,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Has,
}

const EXPECTED_FIELD: &str = "expected a field: attributes.NAME, display_name, state, create_time, \
    update_time, or identities.KIND with email, handle, phone, social or url as KIND";

/// The field of a condition.
pub fn path(input: &mut Input<'_>) -> Parsed<Path> {
    let at = input.current_token_start();
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let word: &str = take_while(0.., is_word).parse_next(input)?;
    if word == "attributes." {
        return quoted_name(input);
    }

    Ok(match word {
        "display_name" => Path::Field(Field::DisplayName),
        "state" => Path::Field(Field::State),
        "create_time" => Path::Field(Field::CreateTime),
        "update_time" => Path::UpdateTime,
        _ => {
            if let Some(name) = word.strip_prefix("attributes.") {
                return attribute(at, name);
            }
            match word.strip_prefix("identities.").and_then(|kind| kind.parse().ok()) {
                Some(kind) => Path::Identities(kind),
                None if ["and", "or", "not"].contains(&word.to_lowercase().as_str()) => {
                    return Err(cut(
                        at,
                        format!(
                            "{EXPECTED_FIELD}; AND, OR and NOT join conditions. Found \
                        {} where a condition belongs,",
                            word.to_uppercase()
                        ),
                    ));
                }
                None => return Err(cut(at, EXPECTED_FIELD)),
            }
        }
    })
}

fn quoted_name(input: &mut Input<'_>) -> Parsed<Path> {
    let at = input.current_token_start();
    let expected = "expected the name of an attribute, such as attributes.\"any name\",";
    if !input.starts_with(['"', '\'']) {
        return Err(cut(at, expected));
    }
    let name = literal(input)?;
    if name.prefix || name.suffix {
        return Err(cut(at, expected));
    }
    attribute(at, &name.text)
}

fn attribute(at: usize, name: &str) -> Parsed<Path> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return Err(cut(at, "expected the name of an attribute, of 1 to 256 bytes,"));
    }
    Ok(Path::Field(Field::Attribute(name.to_owned())))
}

/// The conditions with these parts, all of which hold: one, or one for each word of a display name.
/// Whether they are negated comes first.
pub fn conditions_of(
    path: Path,
    (at, operator): (usize, Operator),
    value: &Literal,
    rules: &[Rules],
) -> Result<(bool, Vec<Condition>), SyntaxError> {
    let is_name = path == Path::Field(Field::DisplayName);
    if is_name && !value.is_any() && (operator == Operator::Has || value.suffix) {
        return named(value, (at, operator));
    }
    Ok((false, vec![condition(path, (at, operator), value, rules)?]))
}

/// The names that have the words of a value; if it starts with `*`, as their last words.
fn named(
    value: &Literal,
    (at, operator): (usize, Operator),
) -> Result<(bool, Vec<Condition>), SyntaxError> {
    let typed = TypedName::new(&value.text, value.prefix);
    let mut words = typed.ranges();
    if words.len() > MAX_NAME_WORDS {
        let message = format!("a value has at most {MAX_NAME_WORDS} words; found more");
        return Err(SyntaxError::new(value.at, message));
    }
    if words.is_empty() && !value.prefix {
        let message = "expected a word of the display name (display_name = \"\" finds users \
            without a name)";
        return Err(SyntaxError::new(value.at, message));
    }
    if words.is_empty() {
        words.push(vec![Range::prefix("")]);
    }

    let holds = |subject| Condition { subject, differs: false };
    let last = value.suffix.then(|| holds(Subject::LastWords(typed)));
    let has = |ranges| holds(Subject::Field(Field::NameForm, ranges));
    let all = words.into_iter().map(has).chain(last).collect();
    match operator {
        Operator::Equals | Operator::Has => Ok((false, all)),
        Operator::Differs => Ok((true, all)),
        _ => Err(SyntaxError::new(at, STARS_RULE)),
    }
}

const STARS_RULE: &str =
    "a value that starts or ends with * goes with =, != and : only; found this";

/// The condition with these parts.
fn condition(
    path: Path,
    (at, operator): (usize, Operator),
    value: &Literal,
    rules: &[Rules],
) -> Result<Condition, SyntaxError> {
    use Operator::{Differs, Equals, Has};
    let takes_any = operator == Has && value.is_any();
    if value.is_any() && !takes_any {
        return Err(SyntaxError::new(
            value.at,
            "only : takes a * alone (NAME:* is presence); found one",
        ));
    }
    let is_equality = matches!(operator, Equals | Differs | Has);
    if (value.prefix || value.suffix) && !is_equality {
        return Err(SyntaxError::new(at, STARS_RULE));
    }
    if value.suffix && !matches!(path, Path::Identities(_)) {
        return Err(SyntaxError::new(
            value.at,
            "a value that starts with * goes with display_name and identities only; found one",
        ));
    }

    let subject = match path {
        Path::Identities(_) | Path::Field(Field::State) if !is_equality => {
            return Err(SyntaxError::new(
                at,
                "this field goes with =, != and : only; found another",
            ));
        }
        Path::Identities(kind) => identities(kind, value, rules)?,
        Path::UpdateTime if takes_any => Subject::UpdateTime(Range::ALL),
        Path::UpdateTime => Subject::UpdateTime(times(operator, value.times()?)),
        Path::Field(field) => {
            let range = match field {
                // An empty name does not count as present.
                Field::DisplayName if takes_any => range(Operator::Greater, empty()),
                _ if takes_any => Range::ALL,
                Field::CreateTime => times(operator, value.times()?),
                Field::State => range(operator, state(value)?),
                _ if value.prefix => Range::prefix(&value.text),
                Field::DisplayName => range(operator, Scalar::String(value.text.clone())),
                _ => range(operator, value.scalar()?),
            };
            let is_text = range.class() == Some(Class::String) && is_equality && !takes_any;
            let ranges = if is_text { spellings(value, range) } else { vec![range] };
            Subject::Field(field, ranges)
        }
    };
    Ok(Condition { subject, differs: operator == Differs })
}

/// The range of a text, and those of its composed and its decomposed spelling.
fn spellings(value: &Literal, typed: Range) -> Vec<Range> {
    if value.text.is_ascii() {
        return vec![typed];
    }
    let spelt = |text: String| match value.prefix {
        true => Range::prefix(&text),
        false => Range::point(Scalar::String(text)),
    };
    let (composed, decomposed) = (value.text.nfc().collect(), value.text.nfd().collect());
    Range::distinct(vec![typed, spelt(composed), spelt(decomposed)])
}

fn empty() -> Scalar {
    Scalar::String(String::new())
}

/// The values that relate so to `value`, within its class.
fn range(operator: Operator, value: Scalar) -> Range {
    let class = value.class();
    match operator {
        Operator::Equals | Operator::Differs | Operator::Has => Range::point(value),
        Operator::Less => Range::below(Bound::Excluded(value), class),
        Operator::AtMost => Range::below(Bound::Included(value), class),
        Operator::Greater => Range::above(Bound::Excluded(value), class),
        Operator::AtLeast => Range::above(Bound::Included(value), class),
    }
}

/// The times that relate so to an instant or to all instants of a day: after a day is after its
/// last one.
fn times(operator: Operator, [first, last]: [Timestamp; 2]) -> Range {
    let (first, last) = (Scalar::Time(first), Scalar::Time(last));
    match operator {
        Operator::Less | Operator::AtLeast => range(operator, first),
        Operator::AtMost | Operator::Greater => range(operator, last),
        Operator::Equals | Operator::Differs | Operator::Has => {
            Range { lower: Bound::Included(first), upper: Bound::Included(last) }
        }
    }
}

/// The state of a name in any case.
fn state(value: &Literal) -> Result<Scalar, SyntaxError> {
    let state = STATES.iter().find(|state| state.eq_ignore_ascii_case(&value.text));
    match state.filter(|_| !value.prefix) {
        Some(state) => Ok(Scalar::String((*state).to_owned())),
        None => Err(SyntaxError::new(value.at, format!("expected one of {}", STATES.join(", ")))),
    }
}

/// Identifiers are normalised, so that any spelling finds the owner. A prefix applies to the
/// canonical value, and is folded like it, by the current rules.
fn identities(kind: Kind, value: &Literal, rules: &[Rules]) -> Result<Subject, SyntaxError> {
    if value.prefix {
        let rules = rules.first().copied().unwrap_or(Rules::PRESENT);
        return Ok(Subject::IdentityPrefix(kind, rules.fold_prefix(kind, &value.text)));
    }
    if value.suffix {
        let rules = rules.first().copied().unwrap_or(Rules::PRESENT);
        return Ok(Subject::IdentitySuffix(kind, rules.fold_suffix(kind, &value.text)));
    }

    let invalid =
        |message: String| SyntaxError::new(value.at, format!("{message}. Found another value"));
    let text = format!("{kind}:{}", value.text);
    let raw = RawIdentifier::from_text(&text).map_err(|error| invalid(error.to_string()))?;
    let mut identifiers = Vec::new();
    for (n, rules) in rules.iter().enumerate() {
        match rules.parse(raw) {
            Ok(identifier) if identifiers.contains(&identifier) => {}
            Ok(identifier) => identifiers.push(identifier),
            Err(rejection) if n == 0 => {
                let kept = rules.earlier_forms(raw).into_iter().filter(|form| !rules.has(form));
                identifiers.extend(kept);
                if identifiers.is_empty() {
                    return Err(invalid(rejection.to_string()));
                }
            }
            Err(_) => {}
        }
    }
    Ok(Subject::Identity(identifiers))
}
