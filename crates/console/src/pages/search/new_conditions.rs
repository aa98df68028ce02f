//! New conditions of a filter, of what somebody chose in a form.

use polynym_presentation::{attribute, state};
use polynym_proto::time;
use v1::{AttributeDefinition, AttributeType, State};

use crate::form;
use crate::prelude::*;
use crate::views::reading::escaped;

/// The operators to choose for an attribute: the value of the field, and its label.
pub const OPERATORS: [(&str, &str); 9] = [
    ("=", "is"),
    ("start", "starts with"),
    ("!=", "is not"),
    ("<", "is less than"),
    ("<=", "is at most"),
    (">=", "is at least"),
    (">", "is more than"),
    (SET, "is set"),
    (UNSET, "is not set"),
];
const SET: &str = "set";
const UNSET: &str = "unset";
/// The times to choose by: the prefix of the form's fields, the field of filters, and the label.
pub const TIMES: [(&str, &str, &str); 2] =
    [("created", "create_time", "Created"), ("changed", "update_time", "Changed")];
/// The bytes of a day, such as `2026-01-31`.
const DAY_BYTES: usize = 10;

/// The conditions that a form asks for.
///
/// # Errors
/// A value is not of the type of its field.
pub fn conditions(
    form: &Form,
    definitions: &[AttributeDefinition],
) -> Result<Vec<String>, Failure> {
    let state = state::parse(form.get("state")).map(of_state);
    let mut conditions: Vec<_> = state.into_iter().collect();
    conditions.extend(of_attribute(form, definitions)?);
    for (prefix, field, label) in TIMES {
        for (bound, operator) in [("from", ">="), ("to", "<=")] {
            let typed = form.get(&format!("{prefix}_{bound}")).to_owned();
            if let Some(time) = time_text(&format!("{label}, {bound}"), &typed)? {
                conditions.push(format!("{field} {operator} {time}"));
            }
        }
    }
    Ok(conditions)
}

fn of_state(state: State) -> String {
    format!("state = {}", state::word(state).to_uppercase())
}

/// A time as in filters; a day stays one, and stands for all its times.
fn time_text(label: &str, typed: &str) -> Result<Option<String>, Failure> {
    let time = form::time(label, typed)?;
    Ok(time.map(|time| if typed.len() == DAY_BYTES { typed.to_owned() } else { time.to_string() }))
}

/// The conditions on an attribute; none if none is chosen.
fn of_attribute(form: &Form, definitions: &[AttributeDefinition]) -> Result<Vec<String>, Failure> {
    let name = form.get("attribute");
    if name.is_empty() {
        return Ok(Vec::new());
    }
    let field = field(name);
    let operator = form.get("operator");
    match operator {
        SET => return Ok(vec![format!("{field}:*")]),
        UNSET => return Ok(vec![format!("NOT {field}:*")]),
        _ => {}
    }
    let value = form.raw("value");
    if operator == "start" {
        return Ok(vec![format!("{field} = \"{}*\"", escaped(value))]);
    }
    let known = OPERATORS.iter().find(|(known, _)| *known == operator);
    let operator = known.map_or("=", |(known, _)| known);
    let kind = definitions.iter().find(|known| known.name == name);
    let kind = kind.map(AttributeDefinition::r#type).unwrap_or_default();
    let is_ordered = matches!(operator, "<" | "<=" | ">=" | ">");
    let values = match kind {
        AttributeType::Unspecified if is_ordered => vec![ordered(value)],
        kind => values(value, kind)?,
    };
    let conditions = values.into_iter().map(|value| format!("{field} {operator} {value}"));
    // A value that may be a text or a number is both.
    Ok(match operator {
        "!=" => conditions.collect(),
        _ => vec![conditions.collect::<Vec<_>>().join(" OR ")],
    })
}

/// A value of any type that others are less or more than: numbers for a number, and texts for
/// another value, or one in quotes.
fn ordered(typed: &str) -> String {
    let plain = typed.trim();
    let quoted = plain.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match quoted {
        Some(text) => format!("\"{}\"", escaped(text)),
        None if is_number(plain) || time::parse(plain).is_some() => plain.to_owned(),
        None => format!("\"{}\"", escaped(typed)),
    }
}

/// A value as it is written in a filter, once for each type that it may have.
fn values(typed: &str, kind: AttributeType) -> Result<Vec<String>, Failure> {
    let text = format!("\"{}\"", escaped(typed));
    let plain = typed.trim();
    let is_switch = |word: &str| ["true", "false"].contains(&word);
    let expected = |valid: bool, value: String| match valid {
        true => Ok(vec![value]),
        false => {
            let kind = attribute::words(kind).name;
            Err(Failure::Form(format!("The attribute has values of the type “{kind}”.")))
        }
    };
    match kind {
        AttributeType::String | AttributeType::List => Ok(vec![text]),
        AttributeType::Int | AttributeType::Double => expected(is_number(plain), plain.to_owned()),
        AttributeType::Bool => {
            let word = match plain.to_lowercase().as_str() {
                "yes" => "true".to_owned(),
                "no" => "false".to_owned(),
                other => other.to_owned(),
            };
            expected(is_switch(&word), word)
        }
        AttributeType::Time => {
            let time = form::time("Value", plain)?;
            expected(time.is_some(), time.map(|time| time.to_string()).unwrap_or_default())
        }
        AttributeType::Unspecified => {
            let is_other = is_number(plain) || is_switch(plain) || time::parse(plain).is_some();
            Ok([text].into_iter().chain(is_other.then(|| plain.to_owned())).collect())
        }
    }
}

/// Whether filters read a text as a number.
fn is_number(text: &str) -> bool {
    let is_written = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
    let is_whole = text.trim_start_matches(['-', '+']).bytes().all(|byte| byte.is_ascii_digit());
    let has_bits = || match is_whole {
        true => text.parse::<i64>().is_ok(),
        false => text.parse::<f64>().is_ok_and(f64::is_finite),
    };
    text.chars().all(is_written) && has_bits()
}

/// The field of an attribute.
pub fn field(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match name.chars().all(is_bare) {
        true => format!("attributes.{name}"),
        false => format!("attributes.\"{}\"", escaped(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &[(&str, &str)], kind: AttributeType) -> Result<String, Failure> {
        let definition = AttributeDefinition {
            name: "level".to_owned(),
            r#type: kind.into(),
            ..Default::default()
        };
        conditions(&Form::of(fields), &[definition]).map(|all| all.join(" AND "))
    }

    #[test]
    fn conditions_have_the_values_as_they_are_typed() {
        let any = AttributeType::Unspecified;
        let on = |name: &'static str, operator: &'static str, value: &'static str| {
            of(&[("attribute", name), ("operator", operator), ("value", value)], any).unwrap()
        };
        assert_eq!(on("team", "=", "search"), r#"attributes.team = "search""#);
        assert_eq!(on("a \"b\" ü", "=", "x"), r#"attributes."a \"b\" ü" = "x""#);
        assert_eq!(on("team", "=", r#"\"a": b*'"#), r#"attributes.team = "\\\"a\": b\*'""#);
        assert_eq!(on("team", "start", "50*"), r#"attributes.team = "50\**""#);
        assert_eq!(on("team", "set", ""), "attributes.team:*");
        assert_eq!(on("team", "unset", "x"), "NOT attributes.team:*");
        assert_eq!(
            on("zip", "=", "24103"),
            r#"attributes.zip = "24103" OR attributes.zip = 24103"#
        );
        assert_eq!(on("zip", "!=", "1"), r#"attributes.zip != "1" AND attributes.zip != 1"#);
        assert_eq!(on("zip", "<", " 50228 "), "attributes.zip < 50228");
        assert_eq!(on("zip", ">=", "\"24103\""), r#"attributes.zip >= "24103""#);
        assert_eq!(on("zip", "<=", "K-1"), r#"attributes.zip <= "K-1""#);
        assert_eq!(on("team", "nonsense", "x"), r#"attributes.team = "x""#);
        assert_eq!(on("", "=", "x"), "");
    }

    #[test]
    fn values_have_the_type_of_their_attribute() {
        let typed = |value: &'static str, kind: AttributeType| {
            of(&[("attribute", "level"), ("operator", ">="), ("value", value)], kind)
        };
        assert_eq!(typed(" 3 ", AttributeType::Int).unwrap(), "attributes.level >= 3");
        assert_eq!(typed("-2.5e3", AttributeType::Double).unwrap(), "attributes.level >= -2.5e3");
        assert_eq!(typed("3", AttributeType::String).unwrap(), r#"attributes.level >= "3""#);
        assert_eq!(typed("yes", AttributeType::Bool).unwrap(), "attributes.level >= true");
        let day = typed("2026-01-31", AttributeType::Time).unwrap();
        assert_eq!(day, "attributes.level >= 2026-01-31T00:00:00Z");
        for (wrong, kind) in [
            ("three", AttributeType::Int),
            ("", AttributeType::Int),
            ("99999999999999999999", AttributeType::Int),
            ("NaN", AttributeType::Double),
            ("3 OR state:*", AttributeType::Int),
            ("perhaps", AttributeType::Bool),
            ("soon", AttributeType::Time),
            ("", AttributeType::Time),
        ] {
            assert!(matches!(typed(wrong, kind), Err(Failure::Form(_))), "{wrong}");
        }
    }

    #[test]
    fn states_and_periods_are_conditions() {
        let any = AttributeType::Unspecified;
        let fields = [
            ("state", "deleted"),
            ("created_from", "2026-01-31"),
            ("created_to", "2026-02-01"),
            ("changed_from", "2026-01-31T12:00"),
        ];
        let expected = "state = DELETED AND create_time >= 2026-01-31 AND \
            create_time <= 2026-02-01 AND update_time >= 2026-01-31T12:00:00Z";
        assert_eq!(of(&fields, any).unwrap(), expected);
        assert_eq!(of(&[("state", "gone")], any).unwrap(), "");
        assert!(of(&[("created_from", "soon")], any).is_err());
    }
}
