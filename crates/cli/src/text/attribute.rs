//! Attributes on the command line, `NAME=VALUE` or `NAME:TYPE=VALUE`, and in output.

use crate::output::printable;
use polynym_presentation::attribute;
use polynym_proto::v1::attribute_value::Kind;
use polynym_proto::v1::{AttributeValue, StringList};
use polynym_table::ValueType;

/// An attribute on the command line.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeArg {
    /// The name.
    pub name: String,
    /// The value.
    pub value: AttributeValue,
}

/// Parses `NAME=VALUE`, a string, or `NAME:TYPE=VALUE`.
pub fn parse(text: &str) -> Result<AttributeArg, String> {
    let form = "write NAME=VALUE or NAME:TYPE=VALUE";
    let (typed_name, value) = text.split_once('=').ok_or(form)?;
    let (name, type_name) = typed_name.rsplit_once(':').unwrap_or((typed_name, "string"));
    if name.is_empty() {
        return Err(form.to_owned());
    }
    let value_type = ValueType::parse(type_name)?;
    let value = AttributeValue { kind: Some(kind(value_type, value)?) };
    Ok(AttributeArg { name: name.to_owned(), value })
}

fn kind(value_type: ValueType, value: &str) -> Result<Kind, String> {
    let not = |what: &str| format!("the value is not {what}");
    Ok(match value_type {
        ValueType::String => Kind::StringValue(value.to_owned()),
        ValueType::Int => {
            Kind::IntValue(value.parse().map_err(|_| not("a whole number of 64 bits"))?)
        }
        ValueType::Double => Kind::DoubleValue(value.parse().map_err(|_| not("a number"))?),
        ValueType::Bool => Kind::BoolValue(value.parse().map_err(|_| not("true or false"))?),
        ValueType::Time => {
            let expected = || not("a time with Z or an offset, such as 2026-01-31T12:00:00Z");
            Kind::TimeValue(polynym_proto::time::parse(value).ok_or_else(expected)?)
        }
        ValueType::List => Kind::ListValue(StringList { values: items(value) }),
    })
}

fn items(value: &str) -> Vec<String> {
    value.split(',').filter(|_| !value.is_empty()).map(str::to_owned).collect()
}

/// The value as text, safe to print.
pub fn text(value: &AttributeValue) -> String {
    printable(&attribute::text(value, attribute::PLAIN)).into_owned()
}

#[cfg(test)]
mod tests {
    use prost_types::Timestamp;

    use super::*;

    fn parsed(text: &str) -> Kind {
        parse(text).unwrap().value.kind.unwrap()
    }

    #[test]
    fn each_type_is_parsed() {
        assert_eq!(parse("team=search=2").unwrap().name, "team");
        assert_eq!(parsed("team=search=2"), Kind::StringValue("search=2".to_owned()));
        assert_eq!(parsed("site=https://a:1/"), Kind::StringValue("https://a:1/".to_owned()));
        assert_eq!(parsed("level:int=-3"), Kind::IntValue(-3));
        assert_eq!(parsed("score:double=0.5"), Kind::DoubleValue(0.5));
        assert_eq!(parsed("staff:bool=true"), Kind::BoolValue(true));
        let joined = Timestamp { seconds: 1_769_860_800, nanos: 500_000_000 };
        assert_eq!(parsed("joined:time=2026-01-31T12:00:00.5Z"), Kind::TimeValue(joined));
        let list = |values: &[&str]| {
            Kind::ListValue(StringList { values: values.iter().map(ToString::to_string).collect() })
        };
        assert_eq!(parsed("tags:list=a,b c"), list(&["a", "b c"]));
        assert_eq!(parsed("tags:list="), list(&[]));
    }

    #[test]
    fn errors_name_the_expected_form() {
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
