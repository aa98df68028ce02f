//! The serde form of ids: text in human-readable formats, 16 bytes in others.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use super::LocalityId;
use super::text::TEXT_LEN;

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
        <[u8; 16]>::try_from(bytes)
            .map(LocalityId::from)
            .map_err(|_| E::invalid_length(bytes.len(), &self))
    }
}
