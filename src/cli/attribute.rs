//! Attributes as they are typed, `NAME=VALUE` or `NAME:TYPE=VALUE`, and as they are shown.

use clap::ValueEnum;
use prost_types::Timestamp;

use super::output::printable;
use crate::proto::v1::attribute_value::Kind;
use crate::proto::v1::{AttributeValue, StringList};

/// The type of an attribute's value, by the word for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ValueType {
    String,
    Int,
    Double,
    Bool,
    Time,
    List,
}

impl ValueType {
    /// The words, for errors.
    pub const WORDS: &str = "string, int, double, bool, time and list";

    /// The type that a word names, if it names one.
    pub fn parse(word: &str) -> Option<Self> {
        Self::from_str(word, false).ok()
    }
}

/// An attribute as typed on the command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: AttributeValue,
}

/// Reads `NAME=VALUE`, a text, or `NAME:TYPE=VALUE`.
pub fn parse(text: &str) -> Result<Attribute, String> {
    let form = "write NAME=VALUE or NAME:TYPE=VALUE";
    let (name, value) = text.split_once('=').ok_or(form)?;
    let (name, kind) = name.rsplit_once(':').unwrap_or((name, "string"));
    if name.is_empty() {
        return Err(form.to_owned());
    }
    let kind = ValueType::parse(kind);
    let kind = kind.ok_or_else(|| format!("the type is one of {}", ValueType::WORDS))?;
    let value = AttributeValue { kind: Some(typed(kind, value)?) };
    Ok(Attribute { name: name.to_owned(), value })
}

fn typed(kind: ValueType, value: &str) -> Result<Kind, String> {
    let not = |what: &str| format!("the value is not {what}");
    Ok(match kind {
        ValueType::String => Kind::StringValue(value.to_owned()),
        ValueType::Int => {
            Kind::IntValue(value.parse().map_err(|_| not("a whole number of 64 bits"))?)
        }
        ValueType::Double => Kind::DoubleValue(value.parse().map_err(|_| not("a number"))?),
        ValueType::Bool => Kind::BoolValue(value.parse().map_err(|_| not("true or false"))?),
        ValueType::Time => {
            Kind::TimeValue(time(value).ok_or_else(|| not("a time such as 2026-01-31T12:00:00Z"))?)
        }
        ValueType::List => Kind::ListValue(StringList { values: items(value) }),
    })
}

fn time(value: &str) -> Option<Timestamp> {
    value.parse().ok()
}

fn items(value: &str) -> Vec<String> {
    value.split(',').filter(|_| !value.is_empty()).map(str::to_owned).collect()
}

/// The value as text, safe to print.
pub fn text(value: &AttributeValue) -> String {
    let text = match &value.kind {
        None => String::new(),
        Some(Kind::StringValue(text)) => text.clone(),
        Some(Kind::IntValue(number)) => number.to_string(),
        Some(Kind::DoubleValue(number)) => number.to_string(),
        Some(Kind::BoolValue(yes)) => yes.to_string(),
        Some(Kind::TimeValue(time)) => time.to_string(),
        Some(Kind::ListValue(list)) => list.values.join(", "),
    };
    printable(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Kind {
        parse(text).unwrap().value.kind.unwrap()
    }

    #[test]
    fn each_type_is_read() {
        assert_eq!(parse("team=search=2").unwrap().name, "team");
        assert_eq!(kind("team=search=2"), Kind::StringValue("search=2".to_owned()));
        assert_eq!(kind("site=https://a:1/"), Kind::StringValue("https://a:1/".to_owned()));
        assert_eq!(kind("level:int=-3"), Kind::IntValue(-3));
        assert_eq!(kind("score:double=0.5"), Kind::DoubleValue(0.5));
        assert_eq!(kind("staff:bool=true"), Kind::BoolValue(true));
        let joined = Timestamp { seconds: 1_769_860_800, nanos: 500_000_000 };
        assert_eq!(kind("joined:time=2026-01-31T12:00:00.5Z"), Kind::TimeValue(joined));
        let list = |values: &[&str]| {
            Kind::ListValue(StringList { values: values.iter().map(ToString::to_string).collect() })
        };
        assert_eq!(kind("tags:list=a,b c"), list(&["a", "b c"]));
        assert_eq!(kind("tags:list="), list(&[]));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, part) in [
            ("team", "NAME=VALUE"),
            ("=x", "NAME=VALUE"),
            ("level:int=3.5", "whole number"),
            ("level:number=3", "string, int"),
            ("staff:bool=yes", "true or false"),
            ("joined:time=yesterday", "2026-01-31"),
        ] {
            assert!(parse(text).unwrap_err().contains(part), "{text}");
        }
    }
}
