//! The mapping of the columns of a CSV file to fields of users.

use std::collections::BTreeMap;

use ::csv::StringRecord;
use prost_types::Timestamp;

use crate::text::attribute::ValueType;
use polynym_proto::v1::attribute_value::Kind as ValueKind;
use polynym_proto::v1::identifier::Kind;
use polynym_proto::v1::{
    AttributeValue, Identifier, Identity, Phone, Social, State, StringList, User,
};

/// A mapping of columns to fields.
#[derive(Debug)]
pub struct Mapping {
    fields: Vec<(Field, usize)>,
    region: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Field {
    UserId,
    DisplayName,
    Email,
    Handle,
    Phone,
    Url,
    Social(String),
    Attribute(String, ValueType),
    State,
    CreateTime,
    UpdateTime,
}

impl Mapping {
    /// Parses `maps`, such as `email=E-Mail,handle=Login`, for this header.
    ///
    /// # Errors
    /// The error in words.
    pub fn new(maps: &[String], header: &StringRecord, region: &str) -> Result<Self, String> {
        let parse = |pair: &str| {
            let (field, column) = pair
                .split_once('=')
                .ok_or_else(|| format!("--map {pair}: must be of the form FIELD=COLUMN"))?;
            let position = header.iter().position(|name| name.trim() == column.trim());
            match position {
                Some(position) => Ok((Field::parse(field.trim())?, position)),
                None => {
                    let columns = header.iter().collect::<Vec<_>>().join(", ");
                    Err(format!("--map {pair}: no such column; the file has {columns}"))
                }
            }
        };
        let pairs = maps.iter().flat_map(|map| map.split(','));
        let fields = pairs.map(parse).collect::<Result<Vec<_>, String>>()?;
        if fields.is_empty() {
            return Err("a CSV file needs --map FIELD=COLUMN,...: see --help".to_owned());
        }
        Ok(Self { fields, region: region.to_owned() })
    }

    /// The user of a row. Empty cells are absent values.
    ///
    /// # Errors
    /// The error in words.
    pub fn user(&self, row: &StringRecord) -> Result<User, String> {
        let mut user = User::default();
        for (field, column) in &self.fields {
            let cell = row.get(*column).unwrap_or_default().trim();
            if !cell.is_empty() {
                self.set(&mut user, field, cell)?;
            }
        }
        Ok(user)
    }

    fn set(&self, user: &mut User, field: &Field, cell: &str) -> Result<(), String> {
        let text = cell.to_owned();
        match field {
            Field::UserId => user.user_id = text,
            Field::DisplayName => user.display_name = text,
            Field::Email => link(user, Kind::Email(text)),
            Field::Handle => link(user, Kind::Handle(text)),
            Field::Phone => {
                link(user, Kind::Phone(Phone { number: text, region: self.region.clone() }));
            }
            Field::Url => link(user, Kind::Url(text)),
            Field::Social(provider) => {
                link(user, Kind::Social(Social { provider: provider.clone(), subject: text }));
            }
            Field::Attribute(name, kind) => {
                let kind = Some(value(*kind, cell).map_err(|error| format!("{name}: {error}"))?);
                user.attributes.insert(name.clone(), AttributeValue { kind });
            }
            Field::State => user.set_state(state(cell)?),
            Field::CreateTime => user.create_time = Some(time(cell)?),
            Field::UpdateTime => user.update_time = Some(time(cell)?),
        }
        Ok(())
    }
}

impl Field {
    fn parse(text: &str) -> Result<Self, String> {
        if let Some(provider) = text.strip_prefix("social.") {
            return Ok(Self::Social(provider.to_owned()));
        }
        if let Some(attribute) = text.strip_prefix("attributes.") {
            let (name, kind) = match attribute.rsplit_once(':') {
                Some((name, kind)) => (name, value_type(kind)?),
                None => (attribute, ValueType::String),
            };
            return Ok(Self::Attribute(name.to_owned(), kind));
        }
        let plain = BTreeMap::from([
            ("user_id", Self::UserId),
            ("display_name", Self::DisplayName),
            ("email", Self::Email),
            ("handle", Self::Handle),
            ("phone", Self::Phone),
            ("url", Self::Url),
            ("state", Self::State),
            ("create_time", Self::CreateTime),
            ("update_time", Self::UpdateTime),
        ]);
        plain.get(text).cloned().ok_or_else(|| {
            let names = plain.keys().copied().collect::<Vec<_>>().join(", ");
            format!(
                "--map {text}: no such field; fields are {names}, social.PROVIDER and \
                 attributes.NAME"
            )
        })
    }
}

fn value_type(name: &str) -> Result<ValueType, String> {
    ValueType::parse(name)
        .ok_or_else(|| format!("--map ...:{name}: the type must be one of {}", ValueType::NAMES))
}

/// The value of a cell.
fn value(value_type: ValueType, cell: &str) -> Result<ValueKind, String> {
    let not = |what: &str| format!("is not {what}");
    Ok(match value_type {
        ValueType::String => ValueKind::StringValue(cell.to_owned()),
        ValueType::Int => ValueKind::IntValue(cell.parse().map_err(|_| not("a whole number"))?),
        ValueType::Double => ValueKind::DoubleValue(cell.parse().map_err(|_| not("a number"))?),
        ValueType::Bool => match cell.to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" => ValueKind::BoolValue(true),
            "false" | "no" | "0" => ValueKind::BoolValue(false),
            _ => return Err(not("true or false")),
        },
        ValueType::Time => ValueKind::TimeValue(time(cell)?),
        ValueType::List => {
            let values = cell.split(';').map(|item| item.trim().to_owned()).collect();
            ValueKind::ListValue(StringList { values })
        }
    })
}

fn link(user: &mut User, kind: Kind) {
    let identifier = Some(Identifier { kind: Some(kind) });
    user.identities.push(Identity { identifier, ..Identity::default() });
}

fn time(cell: &str) -> Result<Timestamp, String> {
    polynym_proto::time::parse(cell).ok_or_else(|| {
        format!("{cell}: a time must have Z or an offset, as in 2026-01-31T12:00:00Z")
    })
}

fn state(cell: &str) -> Result<State, String> {
    match cell.to_ascii_lowercase().as_str() {
        "active" => Ok(State::Active),
        "disabled" => Ok(State::Disabled),
        _ => Err(format!("{cell}: the state must be active or disabled")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> StringRecord {
        StringRecord::from(vec!["E-Mail", "Login", "Age", "Tel"])
    }

    #[test]
    fn columns_map_to_fields() {
        let maps = ["email=E-Mail,handle=Login".to_owned(), "attributes.age:int=Age".to_owned()];
        let mapping = Mapping::new(&maps, &header(), "US").unwrap();
        let row = StringRecord::from(vec!["a@example.com", "", "7", "1"]);
        let user = mapping.user(&row).unwrap();
        assert_eq!(user.identities.len(), 1);
        let age = Some(ValueKind::IntValue(7));
        assert_eq!(user.attributes["age"].kind, age);
        assert!(mapping.user(&StringRecord::from(vec!["", "", "x", ""])).is_err());
    }

    #[test]
    fn unknown_fields_and_columns_are_named() {
        for (map, wanted) in
            [("email=Mail", "no such column"), ("mail=E-Mail", "no such field"), ("x", "FIELD=")]
        {
            let error = Mapping::new(&[map.to_owned()], &header(), "").unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
        assert!(Mapping::new(&[], &header(), "").is_err());
    }
}
