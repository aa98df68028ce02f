//! Users as the rows of a table, which an import reads without a mapping.

use polynym_presentation::{attribute, state, time};
use polynym_proto::v1::attribute_value::Kind as ValueKind;
use polynym_proto::v1::identifier::Kind;
use polynym_proto::v1::{AttributeValue, User};

use crate::field::{Field, ValueType};
use crate::formula::cell_of;

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

    /// Gives attributes that have no type the one of their first value among these users, so that
    /// an import needs no definitions.
    pub fn infer_types<'u>(&mut self, users: impl Iterator<Item = &'u User> + Clone) {
        for field in &mut self.0 {
            if let Field::Attribute(name, value_type @ None) = field {
                let values = users.clone().filter_map(|user| user.attributes.get(&**name));
                *value_type = values.filter_map(type_of).next().filter(|t| *t != ValueType::String);
            }
        }
    }

    /// The first row: names that an import understands.
    pub fn header(&self) -> Vec<String> {
        let name = |field: &Field| match field.is_identity() {
            true => format!("{}[{SEPARATOR}]", field.name()),
            false => field.name(),
        };
        self.0.iter().map(name).collect()
    }

    /// The row of a user, for [`csv_row`](crate::csv_row).
    ///
    /// # Errors
    /// One of several values in a cell has the sign that separates them, or is blank: in words.
    pub fn row(&self, user: &User) -> Result<Vec<String>, String> {
        self.0.iter().map(|field| cell(field, user)).collect()
    }
}

fn cell(field: &Field, user: &User) -> Result<String, String> {
    let text = match field {
        Field::Attribute(name, _) => match user.attributes.get(name) {
            Some(value) => text(field, user, value)?,
            None => return Ok(String::new()),
        },
        field => plain(field, user)?,
    };
    let is_absent = text.is_empty() && !matches!(field, Field::Attribute(..));
    Ok(if is_absent { text } else { cell_of(&text).into_owned() })
}

/// The text of a field that is no attribute; empty if the user has none.
fn plain(field: &Field, user: &User) -> Result<String, String> {
    Ok(match field {
        Field::UserId => user.user_id.clone(),
        Field::DisplayName => user.display_name.clone(),
        Field::State => state::word(user.state()).to_owned(),
        Field::CreateTime => time::text(user.create_time.as_ref()),
        Field::UpdateTime => time::text(user.update_time.as_ref()),
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
    joined(field, user, &values.collect::<Vec<_>>())
}

/// The values of one cell.
fn joined(field: &Field, user: &User, values: &[String]) -> Result<String, String> {
    let (id, name) = (&user.user_id, field.name());
    let fault = |what: &str| Err(format!("{name} of {id} has {what}: export it as JSON Lines"));
    if values.iter().any(|value| value.contains(SEPARATOR)) {
        return fault(&format!("a {SEPARATOR}"));
    }
    if values.iter().any(|value| value.is_empty() || value.trim() != value) {
        return fault("a value that is empty, or between white space");
    }
    Ok(values.join(&SEPARATOR.to_string()))
}

/// The text of an attribute.
fn text(field: &Field, user: &User, value: &AttributeValue) -> Result<String, String> {
    match &value.kind {
        Some(ValueKind::ListValue(list)) => joined(field, user, &list.values),
        _ => Ok(attribute::text(value, attribute::PLAIN)),
    }
}

fn type_of(value: &AttributeValue) -> Option<ValueType> {
    ValueType::of(attribute::type_of(value.kind.as_ref()?))
}

#[cfg(test)]
mod tests {
    use csv::StringRecord;
    use polynym_proto::v1::StringList;

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

    /// A user with these attributes.
    fn user(attributes: &[(&str, ValueKind)]) -> User {
        let value = |kind: &ValueKind| AttributeValue { kind: Some(kind.clone()) };
        let attributes = attributes.iter().map(|(name, kind)| ((*name).to_owned(), value(kind)));
        User { attributes: attributes.collect(), ..User::default() }
    }

    fn texts(values: &[&str]) -> ValueKind {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        ValueKind::ListValue(StringList { values })
    }

    /// An import reads each value as it is, whatever its text looks like.
    #[test]
    fn every_value_comes_back() {
        let text = |text: &str| ValueKind::StringValue(text.to_owned());
        let hostile = ["=1+1", "'=1", "x;=1+1", "NULL", "'NULL", "", " ", "'", "01", "\n=1\n"];
        let mut users: Vec<_> = hostile
            .iter()
            .map(|own| user(&[("note", text(own)), ("level", ValueKind::IntValue(-7))]))
            .collect();
        users[0].display_name = "@SUM(A1)".to_owned();
        users[1].attributes.extend(user(&[("tags", texts(&["=a", "+b c"]))]).attributes);
        users[2].attributes.extend(user(&[("tags", texts(&["NULL"]))]).attributes);
        let names = "display_name,attributes.note,attributes.level,attributes.tags";
        let mut columns = ExportColumns::parse(names).unwrap();
        columns.infer_types(users.iter());
        let rows = users.iter().map(|user| columns.row(user).unwrap());
        let rows: Vec<_> = std::iter::once(columns.header()).chain(rows).collect();
        let file =
            rows.iter().flat_map(|row| crate::csv_row(row.iter().map(|c| &**c), b',').unwrap());
        let file: Vec<u8> = file.collect();
        let mut table = crate::Table::open(&*file, None, None).unwrap();
        let mapping = Mapping::new(&[], &table.columns, Options::default()).unwrap();
        for user in users {
            let row = table.rows.next_row().unwrap().unwrap();
            assert_eq!((row.error, mapping.user(&row.cells).unwrap().user), (None, user));
        }
    }

    #[test]
    fn a_list_without_a_cell_is_an_error() {
        let columns = ExportColumns::parse("attributes.tags:list").unwrap();
        for values in [&["a;b"][..], &["a", ""], &[" a"]] {
            let error = columns.row(&user(&[("tags", texts(values))])).unwrap_err();
            assert!(error.contains("JSON Lines"), "{error}");
        }
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
