//! The attributes of a user in stores: each has a token instead of its name, and its value encoded
//! as in the API's message, so that a look-up copies bytes.

use prost::Message as _;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};

use crate::encoded::encode::value_message;
use crate::encoded::v1_tag::USER_ATTRIBUTES;
use crate::model::attribute::Value;
use crate::model::unknown::{take, varint};

/// The field numbers of a map entry (protobuf.dev, "Maps").
const NAME: u32 = 1;
const VALUE: u32 = 2;

/// Appends an attribute with an encoded value to an encoded user.
pub fn write_entry(name: &str, value: &[u8], user: &mut Vec<u8>) {
    let field = |length: usize| 1 + encoded_len_varint(length as u64) + length;
    encode_key(USER_ATTRIBUTES, WireType::LengthDelimited, user);
    encode_varint((field(name.len()) + field(value.len())) as u64, user);
    for (tag, bytes) in [(NAME, name.as_bytes()), (VALUE, value)] {
        encode_key(tag, WireType::LengthDelimited, user);
        encode_varint(bytes.len() as u64, user);
        user.extend_from_slice(bytes);
    }
}

/// The encoded value of an attribute.
pub fn encode_value(value: &Value) -> Vec<u8> {
    value_message(value).encode_to_vec()
}

/// Encodes attributes: the token and the length-prefixed value of each.
pub fn encode<'a>(attributes: impl Iterator<Item = (u32, &'a Value)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (token, value) in attributes {
        let encoded = encode_value(value);
        encode_varint(u64::from(token), &mut bytes);
        encode_varint(encoded.len() as u64, &mut bytes);
        bytes.extend(encoded);
    }
    bytes
}

/// Decodes the output of [`encode`] to tokens and encoded values. Ends early if the bytes are
/// damaged.
pub fn entries(mut bytes: &[u8]) -> impl Iterator<Item = (u32, &[u8])> + Clone {
    std::iter::from_fn(move || {
        let token = u32::try_from(varint(&mut bytes)?).ok()?;
        let length = usize::try_from(varint(&mut bytes)?).ok()?;
        Some((token, take(&mut bytes, length)?))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::encoded::decode::read_value;
    use crate::timestamp::Timestamp;
    use polynym_proto::v1;

    fn decode_value(bytes: &[u8]) -> Value {
        read_value(v1::AttributeValue::decode(bytes).unwrap()).unwrap()
    }

    #[test]
    fn encoded_attributes_decode() {
        let values = BTreeMap::from([
            (0, Value::String("é".repeat(200))),
            (1, Value::Int(i64::MIN)),
            (2, Value::Double(-0.0)),
            (300, Value::Bool(false)),
            (9_999, Value::Time(Timestamp::from_millis(-1))),
            (10_000, Value::List(Vec::new())),
            (10_001, Value::String(String::new())),
        ]);
        let bytes = encode(values.iter().map(|(token, value)| (*token, value)));
        let decoded = entries(&bytes).map(|(token, value)| (token, decode_value(value)));
        assert_eq!(decoded.collect::<BTreeMap<_, _>>(), values);
        assert_eq!(entries(&bytes[..bytes.len() - 1]).count(), values.len() - 1);
    }

    #[test]
    fn an_entry_is_part_of_the_message() {
        let value = Value::String("x".repeat(300));
        let mut user = Vec::new();
        write_entry("Favorite Player", &encode_value(&value), &mut user);
        write_entry("b", &encode_value(&Value::Bool(true)), &mut user);
        let read = v1::User::decode(user.as_slice()).unwrap().attributes;
        let wanted = [("Favorite Player", value), ("b", Value::Bool(true))];
        assert!(
            read.into_iter()
                .eq(wanted.iter().map(|(name, value)| ((*name).to_owned(), value_message(value))))
        );
    }
}
