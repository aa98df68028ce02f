//! The options of an import for lines whose users exist.

use crate::error::{Error, Invalid};
use polynym_identifier::{Identifier, Kind};

/// The rules by which lines of an import find their users, and change those who exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reimport {
    /// The treatment of a line whose user exists.
    pub on_existing: OnExisting,
    /// The fields that the file has. [`OnExisting::Replace`] removes what a line lacks of them.
    pub fields: Vec<LineField>,
    /// The identities, or the attribute, by which a line without an id finds its user. By default
    /// all its identities, which must agree.
    pub key: Option<LineField>,
}

/// The treatment of a line whose user exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnExisting {
    /// It is rejected, unless it describes the user as it is.
    #[default]
    Reject,
    /// The user stays as it is.
    Skip,
    /// The user gets what the line has.
    Update,
    /// The user gets what the line has, and loses what the line lacks.
    Replace,
    /// The user gets what it lacks and the line has.
    Fill,
}

/// A field of a user in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineField {
    /// `display_name`.
    DisplayName,
    /// `state`.
    State,
    /// `identities`: those of all kinds.
    Identities,
    /// The identities of one kind, such as `email`.
    Kind(Kind),
    /// The accounts at one provider: `social.PROVIDER`.
    Provider(String),
    /// `attributes`: all of them.
    Attributes,
    /// One attribute: `attributes.NAME`.
    Attribute(String),
}

impl LineField {
    /// The field with this name; none for fields that an import sets only in new users.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "display_name" => Self::DisplayName,
            "state" => Self::State,
            "identities" => Self::Identities,
            "attributes" => Self::Attributes,
            _ => match name.split_once('.') {
                Some(("social", provider)) => Self::Provider(provider.to_ascii_lowercase()),
                Some(("attributes", attribute)) => Self::Attribute(attribute.to_owned()),
                _ => Self::Kind(Kind::ALL.into_iter().find(|kind| kind.as_str() == name)?),
            },
        })
    }

    /// Whether an identity belongs to the field.
    pub fn has_identity(&self, identifier: &Identifier) -> bool {
        match self {
            Self::Identities => true,
            Self::Kind(kind) => identifier.kind() == *kind,
            Self::Provider(wanted) => {
                identifier.social_parts().is_some_and(|(provider, _)| *provider == **wanted)
            }
            _ => false,
        }
    }

    /// The narrowest field of an identity.
    pub fn of_identity(identifier: &Identifier) -> Self {
        match identifier.social_parts() {
            Some((provider, _)) => Self::Provider(provider.into_owned()),
            None => Self::Kind(identifier.kind()),
        }
    }

    /// Whether an identity may belong to both fields.
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Identities, Self::Identities | Self::Kind(_) | Self::Provider(_))
            | (Self::Kind(_) | Self::Provider(_), Self::Identities)
            | (Self::Kind(Kind::Social), Self::Provider(_))
            | (Self::Provider(_), Self::Kind(Kind::Social)) => true,
            (Self::Kind(one), Self::Kind(other)) => one == other,
            (Self::Provider(one), Self::Provider(other)) => one == other,
            _ => false,
        }
    }

    /// Whether an attribute belongs to the field.
    pub fn has_attribute(&self, name: &str) -> bool {
        match self {
            Self::Attributes => true,
            Self::Attribute(own) => own == name,
            _ => false,
        }
    }
}

impl Reimport {
    /// The options with these names of fields. Without any, a line has all of a user: its display
    /// name, identities and attributes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a field is unknown, or is no key.
    pub fn parse(on_existing: OnExisting, fields: &[String], key: &str) -> Result<Self, Error> {
        let parsed: Option<Vec<_>> = fields.iter().map(|name| LineField::parse(name)).collect();
        let mut fields = parsed.ok_or_else(|| {
            Error::invalid(Invalid::Field, "options.fields", "names an unknown field")
        })?;
        if fields.is_empty() {
            fields = vec![LineField::DisplayName, LineField::Identities, LineField::Attributes];
        }
        let is_key = |field: &LineField| {
            !matches!(field, LineField::DisplayName | LineField::State | LineField::Attributes)
        };
        let key = match key {
            "" => None,
            name => Some(LineField::parse(name).filter(is_key).ok_or_else(|| {
                let rule = "is email, handle, phone, url, social.PROVIDER or attributes.NAME";
                Error::invalid(Invalid::Field, "options.key", rule)
            })?),
        };
        Ok(Self { on_existing, fields, key })
    }

    /// Whether a user who exists is found, and perhaps changed.
    pub fn finds_users(&self) -> bool {
        self.on_existing != OnExisting::Reject
    }

    /// Whether a line finds its user by this identity.
    pub fn finds_by(&self, identifier: &Identifier) -> bool {
        self.key.as_ref().is_none_or(|key| key.has_identity(identifier))
    }

    /// Whether a user loses what a line lacks of a field.
    pub(crate) fn clears(&self, is_meant: impl Fn(&LineField) -> bool) -> bool {
        self.on_existing == OnExisting::Replace && self.fields.iter().any(is_meant)
    }
}
