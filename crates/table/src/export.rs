//! Users as the rows of a table, which an import reads without a mapping.

use polynym_proto::v1::attribute_value::Kind as ValueKind;
use polynym_proto::v1::identifier::Kind;
use polynym_proto::v1::{AttributeValue, State, User};

use crate::field::Field;

/// The sign between the values in a cell.
const SEPARATOR: char = ';';
/// The columns of a table, unless others are named.
const COLUMNS: [&str; 9] = [
    "user_id",
    "display_name",
    "state",
    "email",
    "handle",
    "phone",
    "url",
    "create_time",
    "update_time",
];

/// The columns of a table of users.
#[derive(Clone, Debug)]
pub struct ExportColumns(Vec<Field>);

impl ExportColumns {
    /// These fields, separated by commas; the usual ones if the text is empty.
    ///
    /// # Errors
    /// A field is not known, or has no column: in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let names: Vec<_> = if text.trim().is_empty() { COLUMNS.into() } else { names.collect() };
        let fields = names.into_iter().map(|name| match Field::parse(name)? {
            Field::Region => {
                Err("region: users have phone numbers in international form".to_owned())
            }
            field => Ok(field),
        });
        fields.collect::<Result<_, _>>().map(Self)
    }

    /// The first row: names that an import understands.
    pub fn header(&self) -> Vec<String> {
        let name = |field: &Field| match field.is_identity() {
            true => format!("{}[{SEPARATOR}]", field.name()),
            false => field.name(),
        };
        self.0.iter().map(name).collect()
    }

    /// The row of a user.
    ///
    /// # Errors
    /// One of several values in a cell has the sign that separates them: in words.
    pub fn row(&self, user: &User) -> Result<Vec<String>, String> {
        self.0.iter().map(|field| cell(field, user)).collect()
    }
}

fn cell(field: &Field, user: &User) -> Result<String, String> {
    let time = |time: Option<prost_types::Timestamp>| time.map_or(String::new(), |t| t.to_string());
    Ok(match field {
        Field::UserId => user.user_id.clone(),
        Field::DisplayName => user.display_name.clone(),
        Field::State => match user.state() {
            State::Active => "active".to_owned(),
            State::Disabled => "disabled".to_owned(),
            other => other.as_str_name().to_lowercase(),
        },
        Field::CreateTime => time(user.create_time),
        Field::UpdateTime => time(user.update_time),
        Field::Attribute(name, _) => user.attributes.get(name).map_or(String::new(), text),
        identity => identities(identity, user)?,
    })
}

/// The identities of a kind, as they are displayed.
fn identities(field: &Field, user: &User) -> Result<String, String> {
    let values = user.identities.iter().filter_map(|identity| {
        let kind = identity.identifier.as_ref()?.kind.as_ref()?;
        Some(match (field, kind) {
            (Field::Email, Kind::Email(value))
            | (Field::Handle, Kind::Handle(value))
            | (Field::Url, Kind::Url(value)) => value.clone(),
            (Field::Phone, Kind::Phone(phone)) => phone.number.clone(),
            (Field::Social(provider), Kind::Social(social)) if *provider == social.provider => {
                social.subject.clone()
            }
            _ => return None,
        })
    });
    let values: Vec<_> = values.collect();
    if values.iter().any(|value| value.contains(SEPARATOR)) {
        let (id, name) = (&user.user_id, field.name());
        return Err(format!("{name} of {id} has a {SEPARATOR}: export it as JSON Lines"));
    }
    Ok(values.join(&SEPARATOR.to_string()))
}

fn text(value: &AttributeValue) -> String {
    match &value.kind {
        None => String::new(),
        Some(ValueKind::StringValue(text)) => text.clone(),
        Some(ValueKind::IntValue(number)) => number.to_string(),
        Some(ValueKind::DoubleValue(number)) => number.to_string(),
        Some(ValueKind::BoolValue(yes)) => yes.to_string(),
        Some(ValueKind::TimeValue(time)) => time.to_string(),
        Some(ValueKind::ListValue(list)) => list.values.join(&SEPARATOR.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use csv::StringRecord;

    use super::*;
    use crate::{Columns, Mapping, Options};

    #[test]
    fn an_exported_row_is_imported_without_a_mapping() {
        let names = "display_name,email,phone,attributes.level:int,state,social.github";
        let columns = ExportColumns::parse(names).unwrap();
        let header = StringRecord::from(columns.header());
        let mapping = Mapping::new(&[], &Columns::new(&header), Options::default()).unwrap();
        let row = ["Joe", "a@example.com;b@example.com", "+34612345678", "7", "active", "583231"];
        let user = mapping.user(&StringRecord::from(row.to_vec())).unwrap().user;
        assert_eq!(user.identities.len(), 4);
        assert_eq!(columns.row(&user).unwrap(), row);
        assert!(ExportColumns::parse("mail").unwrap_err().contains("no such field"));
        assert_eq!(ExportColumns::parse("").unwrap().header().len(), 9);
    }

    #[test]
    fn a_value_with_the_separator_has_no_cell() {
        let header = StringRecord::from(vec!["handle[|]"]);
        let mapping = Mapping::new(&[], &Columns::new(&header), Options::default()).unwrap();
        let user = mapping.user(&StringRecord::from(vec!["a;b"])).unwrap().user;
        let error = ExportColumns::parse("handle").unwrap().row(&user).unwrap_err();
        assert!(error.contains("JSON Lines"), "{error}");
    }
}
