//! The text form of ids.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use super::id::LocalityId;

/// The length of the text form, in characters and in bytes.
pub const TEXT_LEN: usize = 36;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// The positions of the hyphens in the text form.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// The reason why a text is not a valid id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseIdError {
    /// The text has this number of bytes instead of [`TEXT_LEN`].
    Length(usize),
    /// The byte at this position, counted from 0, should be a hyphen.
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
    /// Writes the lower-case text form into `buffer`, without allocating, and returns it.
    pub fn encode_text<'b>(&self, buffer: &'b mut [u8; TEXT_LEN]) -> &'b str {
        *buffer = *b"........-....-....-....-............";
        let digits = buffer.iter_mut().filter(|byte| **byte == b'.');
        let nibbles = self.as_bytes().iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
        for (digit, nibble) in digits.zip(nibbles) {
            *digit = HEX[usize::from(nibble)];
        }
        std::str::from_utf8(buffer).unwrap_or_default()
    }
}

impl FromStr for LocalityId {
    type Err = ParseIdError;

    /// Parses the hyphenated form of RFC 9562, of any version, in lower or upper case.
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        if text.len() != TEXT_LEN {
            return Err(ParseIdError::Length(text.len()));
        }
        let mut bytes = [0; 16];
        let mut nibbles = 0;
        for (at, byte) in text.bytes().enumerate() {
            if HYPHENS.contains(&at) {
                if byte != b'-' {
                    return Err(ParseIdError::Hyphen(at));
                }
                continue;
            }
            let nibble = char::from(byte).to_digit(16).ok_or(ParseIdError::Digit(at))?;
            bytes[nibbles / 2] = bytes[nibbles / 2] << 4 | nibble as u8;
            nibbles += 1;
        }

        Ok(Self::from(bytes))
    }
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
