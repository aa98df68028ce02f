//! The fields of users that columns have.

use polynym_presentation::attribute;
use polynym_proto::v1::AttributeType;

/// The type of an attribute's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// A text.
    String,
    /// A whole number.
    Int,
    /// A number.
    Double,
    /// True or false.
    Bool,
    /// An instant.
    Time,
    /// A list of texts.
    List,
}

impl ValueType {
    /// The types, by their names.
    pub const ALL: [(&str, Self); 6] = [
        ("string", Self::String),
        ("int", Self::Int),
        ("double", Self::Double),
        ("bool", Self::Bool),
        ("time", Self::Time),
        ("list", Self::List),
    ];

    /// The type of attributes that are defined so; none for any type.
    pub fn of(kind: AttributeType) -> Option<Self> {
        Self::parse(attribute::words(kind).argument).ok()
    }

    /// The type in definitions of attributes.
    pub fn kind(self) -> AttributeType {
        let name = Self::ALL.iter().find(|(_, known)| *known == self).map(|(name, _)| *name);
        let found = attribute::TYPES.iter().find(|known| Some(known.argument) == name);
        found.map_or(AttributeType::Unspecified, |known| known.kind)
    }

    /// The type with this name.
    ///
    /// # Errors
    /// There is none: in words.
    pub fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, value_type)| value_type).ok_or_else(|| {
            let names = Self::ALL.map(|(name, _)| name).join(", ");
            format!("{name}: no such type; types are {names}")
        })
    }
}

/// A field of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// The user's id.
    UserId,
    /// The name for people.
    DisplayName,
    /// An email address.
    Email,
    /// A handle.
    Handle,
    /// A telephone number.
    Phone,
    /// The region of the row's telephone numbers.
    Region,
    /// The URL of a profile.
    Url,
    /// An account at this provider.
    Social(String),
    /// The attribute with this name, and its type if the mapping gives it.
    Attribute(String, Option<ValueType>),
    /// Whether the user is disabled.
    State,
    /// When the user was created.
    CreateTime,
    /// When the user was updated.
    UpdateTime,
}

const SOCIAL: &str = "social.";
const ATTRIBUTE: &str = "attributes.";
const PLAIN: [(&str, Field); 10] = [
    ("user_id", Field::UserId),
    ("display_name", Field::DisplayName),
    ("email", Field::Email),
    ("handle", Field::Handle),
    ("phone", Field::Phone),
    ("region", Field::Region),
    ("url", Field::Url),
    ("state", Field::State),
    ("create_time", Field::CreateTime),
    ("update_time", Field::UpdateTime),
];

impl Field {
    /// The name of the field for users who exist; none if it is set in new users alone.
    pub fn changeable(&self) -> Option<String> {
        match self {
            Self::UserId | Self::Region | Self::CreateTime | Self::UpdateTime => None,
            Self::Attribute(name, _) => Some(format!("{ATTRIBUTE}{name}")),
            _ => Some(self.name()),
        }
    }

    /// The field with this name, such as `email` or `attributes.age:int`.
    ///
    /// # Errors
    /// There is none: in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(provider) = text.strip_prefix(SOCIAL).filter(|name| !name.is_empty()) {
            return Ok(Self::Social(provider.to_owned()));
        }
        if let Some(attribute) = text.strip_prefix(ATTRIBUTE).filter(|name| !name.is_empty()) {
            return Ok(match attribute.rsplit_once(':') {
                Some((name, kind)) => {
                    Self::Attribute(name.to_owned(), Some(ValueType::parse(kind)?))
                }
                None => Self::Attribute(attribute.to_owned(), None),
            });
        }
        let found = PLAIN.iter().find(|(name, _)| *name == text);
        found.map(|(_, field)| field.clone()).ok_or_else(|| {
            let names = PLAIN.map(|(name, _)| name).join(", ");
            format!(
                "{text}: no such field; fields are {names}, social.PROVIDER and attributes.NAME"
            )
        })
    }

    /// The field that a column of this name has, without a mapping: `Display Name` is
    /// `display_name`.
    pub fn named(column: &str) -> Option<Self> {
        let exact = Self::parse(column).ok();
        exact.or_else(|| {
            let name = column.trim().to_lowercase().replace([' ', '-'], "_");
            PLAIN.iter().find(|(known, _)| *known == name).map(|(_, field)| field.clone())
        })
    }

    /// The name, as [`parse`](Self::parse) takes it.
    pub fn name(&self) -> String {
        match self {
            Self::Social(provider) => format!("{SOCIAL}{provider}"),
            Self::Attribute(name, None) => format!("{ATTRIBUTE}{name}"),
            Self::Attribute(name, Some(value_type)) => {
                let found = ValueType::ALL.iter().find(|(_, known)| known == value_type);
                format!("{ATTRIBUTE}{name}:{}", found.map_or("", |(name, _)| name))
            }
            plain => {
                let found = PLAIN.iter().find(|(_, field)| field == plain);
                found.map_or("", |(name, _)| name).to_owned()
            }
        }
    }

    /// Whether a user has one value for each column or item of this field.
    pub const fn is_identity(&self) -> bool {
        matches!(self, Self::Email | Self::Handle | Self::Phone | Self::Url | Self::Social(_))
    }

    /// Whether a cell may have several values.
    pub const fn has_list(&self) -> bool {
        self.is_identity() || matches!(self, Self::Attribute(_, Some(ValueType::List)))
    }

    /// Whether the values of several columns are joined to one text.
    pub const fn is_text(&self) -> bool {
        matches!(self, Self::DisplayName | Self::Attribute(_, None | Some(ValueType::String)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_names() {
        for name in
            ["email", "region", "social.github", "attributes.age:int", "attributes.a:b:list"]
        {
            assert_eq!(Field::parse(name).unwrap().name(), name);
        }
        assert_eq!(Field::named(" Display Name"), Some(Field::DisplayName));
        assert_eq!(Field::named("E-Mail"), None);
        assert!(Field::parse("mail").unwrap_err().contains("no such field"));
        assert!(Field::parse("attributes.age:number").unwrap_err().contains("no such type"));
        assert!(Field::parse("social.").is_err());
        for (_, value_type) in ValueType::ALL {
            assert_eq!(ValueType::of(value_type.kind()), Some(value_type));
        }
        assert_eq!(ValueType::of(AttributeType::Unspecified), None);
    }
}
