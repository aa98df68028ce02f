//! Writing and reading ids as text, and their serde form: text where people read, bytes elsewhere.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use uuid::Uuid;

use super::id::LocalityId;

/// The length of the text form, in characters and in bytes.
pub const TEXT_LEN: usize = 36;

/// Where the text form has its hyphens.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// Why a text is not an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseIdError {
    /// The text has this many bytes, and not [`TEXT_LEN`].
    Length(usize),
    /// The byte at this position, counted from 0, is not the hyphen that belongs there.
    Hyphen(usize),
    /// The byte at this position, counted from 0, is not a hex digit.
    Digit(usize),
}

impl fmt::Display for ParseIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(found) => write!(f, "an id has {TEXT_LEN} characters, not {found}"),
            Self::Hyphen(at) => write!(f, "an id has a hyphen as character {}", at + 1),
            Self::Digit(at) => write!(f, "character {} of the id is not a hex digit", at + 1),
        }
    }
}

impl Error for ParseIdError {}

impl LocalityId {
    /// Writes the text form, lower-case, into `buffer` and gives it back as a `str`. It does not
    /// allocate.
    pub fn encode_text<'b>(&self, buffer: &'b mut [u8; TEXT_LEN]) -> &'b str {
        Uuid::from(*self).hyphenated().encode_lower(buffer)
    }
}

impl FromStr for LocalityId {
    type Err = ParseIdError;

    /// Reads the hyphenated form of RFC 9562, of any version, in lower or upper case.
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        if text.len() != TEXT_LEN {
            return Err(ParseIdError::Length(text.len()));
        }
        let parsed = Uuid::try_parse_ascii(text.as_bytes());
        parsed.map(Self::from).map_err(|_| first_fault(text))
    }
}

/// Names the first byte that is out of place in a text of the right length that is not an id.
fn first_fault(text: &str) -> ParseIdError {
    let mut faults = text.bytes().enumerate().filter_map(|(at, byte)| {
        if HYPHENS.contains(&at) {
            (byte != b'-').then_some(ParseIdError::Hyphen(at))
        } else {
            (!byte.is_ascii_hexdigit()).then_some(ParseIdError::Digit(at))
        }
    });
    faults.next().unwrap_or(ParseIdError::Length(text.len()))
}

impl fmt::Display for LocalityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.encode_text(&mut [0; TEXT_LEN]))
    }
}

impl fmt::Debug for LocalityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for LocalityId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(self.encode_text(&mut [0; TEXT_LEN]))
        } else {
            serializer.serialize_bytes(self.as_bytes())
        }
    }
}

impl<'de> Deserialize<'de> for LocalityId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_str(IdVisitor)
        } else {
            deserializer.deserialize_bytes(IdVisitor)
        }
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = LocalityId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a UUID as text or as 16 bytes")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<LocalityId, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<LocalityId, E> {
        let exact: Result<[u8; 16], _> = bytes.try_into();
        let wrong_length = |_| E::invalid_length(bytes.len(), &self);
        exact.map(LocalityId::from).map_err(wrong_length)
    }
}
