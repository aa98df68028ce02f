//! The fields that can be indexed.

use std::fmt;

/// A field whose values can be indexed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// An attribute.
    Attribute(String),
    /// The display name. Every user has one: the empty text by default.
    DisplayName,
    /// The time when the user was created.
    CreateTime,
    /// The name of the state, in capitals. Indexes omit `ACTIVE`.
    State,
    /// The forms of the display name: its words, words that it joins, and parts of words.
    NameForm,
    /// The domains of the email addresses, each from its last character to its first: a prefix of
    /// that is an end of the domain.
    ReversedDomain,
    /// The phone numbers, each from its last digit to its first: a prefix of that is an end of the
    /// number.
    ReversedPhone,
}

impl Field {
    /// The name of the attribute, if it is one.
    pub fn attribute(&self) -> Option<&str> {
        match self {
            Self::Attribute(name) => Some(name),
            Self::DisplayName
            | Self::CreateTime
            | Self::State
            | Self::NameForm
            | Self::ReversedDomain
            | Self::ReversedPhone => None,
        }
    }
}

/// Whether a name can be written without quotes.
pub fn is_bare(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// The text in quotes, with escapes.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('*', "\\*"))
}

/// The field as a filter names it.
impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attribute(name) if is_bare(name) => write!(f, "attributes.{name}"),
            Self::Attribute(name) => write!(f, "attributes.{}", quoted(name)),
            Self::DisplayName => f.write_str("display_name"),
            Self::CreateTime => f.write_str("create_time"),
            Self::State => f.write_str("state"),
            Self::NameForm => f.write_str("word of display_name"),
            Self::ReversedDomain => f.write_str("reversed domain of identities.email"),
            Self::ReversedPhone => f.write_str("reversed identities.phone"),
        }
    }
}
