//! The keys of the index of attributes: tenant, attribute id, value, user. Their bytes order like
//! these parts. Values order as in MongoDB: integers and doubles by their exact value, then texts
//! by their bytes, then `false` and `true`, then times.

use locality_uuid::LocalityId;

use polynym_directory::{ScalarRef, User};
use polynym_store_common::attribute_names::AttributeId;
use polynym_store_common::searched::{derived_elements, elements};

const NUMBER: u8 = 1;
const TEXT: u8 = 2;
const BOOL: u8 = 3;
const TIME: u8 = 4;

/// Ends a tenant's name and a text: neither has control characters.
const END: u8 = 0;
const SIGN: u64 = 1 << 63;

/// The keys of a user, sorted and unique, with those of its derived elements. `id_of` returns the
/// id of an attribute's name.
pub fn keys(user: &User, id_of: impl Fn(&str) -> Option<AttributeId>) -> Vec<Vec<u8>> {
    let elements = elements(user, id_of).into_iter();
    let mut keys: Vec<_> = elements.map(|(id, scalar)| key(user, id, scalar)).collect();
    keys.extend(derived_elements(user).map(|(id, text)| key(user, id, ScalarRef::Text(&text))));
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn key(user: &User, attribute: AttributeId, scalar: ScalarRef<'_>) -> Vec<u8> {
    let mut key = prefix(user.tenant.as_str(), attribute);
    write_scalar(scalar, &mut key);
    key.extend(user.id.as_bytes());
    key
}

/// The start of the keys of one field of a tenant's users.
pub fn prefix(tenant: &str, attribute: AttributeId) -> Vec<u8> {
    let mut key = Vec::with_capacity(tenant.len() + 48);
    key.extend(tenant.as_bytes());
    key.push(END);
    key.extend(attribute.to_be_bytes());
    key
}

/// The user of a key.
pub fn user(key: &[u8]) -> Option<LocalityId> {
    key.last_chunk::<16>().map(|id| LocalityId::from(*id))
}

/// Adds a value to a key.
pub fn write_scalar(scalar: ScalarRef<'_>, key: &mut Vec<u8>) {
    match scalar {
        ScalarRef::Int(number) => write_number(floor(number), key),
        ScalarRef::Double(number) => write_number((number, 0), key),
        ScalarRef::Text(text) => {
            key.push(TEXT);
            key.extend(text.as_bytes());
            key.push(END);
        }
        ScalarRef::Bool(yes) => key.extend([BOOL, u8::from(yes)]),
        ScalarRef::Time(time) => {
            key.push(TIME);
            key.extend((time.as_millis() as u64 ^ SIGN).to_be_bytes());
        }
    }
}

/// A number as the greatest double not above it, and the remainder.
fn write_number((double, rest): (f64, u16), key: &mut Vec<u8>) {
    // Adding zero turns -0.0 into 0.0.
    let bits = (double + 0.0).to_bits();
    let ordered = if bits & SIGN == 0 { bits ^ SIGN } else { !bits };
    key.push(NUMBER);
    key.extend(ordered.to_be_bytes());
    key.extend(rest.to_be_bytes());
}

/// The greatest double that is at most `number`, and the remainder: at most 1,024, the distance
/// between doubles.
fn floor(number: i64) -> (f64, u16) {
    let nearest = number as f64;
    let below = if nearest as i128 > i128::from(number) { nearest.next_down() } else { nearest };
    (below, (i128::from(number) - below as i128) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use polynym_directory::Timestamp;

    fn encoded(scalar: ScalarRef<'_>) -> Vec<u8> {
        let mut key = Vec::new();
        write_scalar(scalar, &mut key);
        key
    }

    #[test]
    fn keys_order_like_values() {
        let two_53 = 1_i64 << 53;
        let time = |millis| ScalarRef::Time(Timestamp::from_millis(millis));
        let ordered = [
            ScalarRef::Double(f64::MIN),
            ScalarRef::Int(i64::MIN),
            ScalarRef::Int(i64::MIN + 1),
            ScalarRef::Int(-two_53 - 1),
            ScalarRef::Double(-(two_53 as f64)),
            ScalarRef::Int(-1),
            ScalarRef::Double(-f64::MIN_POSITIVE),
            ScalarRef::Int(0),
            ScalarRef::Double(f64::from_bits(1)),
            ScalarRef::Double(0.5),
            ScalarRef::Int(1),
            ScalarRef::Double(two_53 as f64),
            ScalarRef::Int(two_53 + 1),
            ScalarRef::Double((two_53 + 2) as f64),
            ScalarRef::Int(two_53 + 3),
            ScalarRef::Int(i64::MAX - 1),
            ScalarRef::Int(i64::MAX),
            ScalarRef::Double(i64::MAX as f64),
            ScalarRef::Double(f64::MAX),
            ScalarRef::Text(""),
            ScalarRef::Text("a"),
            ScalarRef::Text("a\t"),
            ScalarRef::Text("ab"),
            ScalarRef::Text("é"),
            ScalarRef::Bool(false),
            ScalarRef::Bool(true),
            time(i64::MIN),
            time(-1),
            time(0),
            time(i64::MAX),
        ];
        let keys: Vec<_> = ordered.iter().map(|scalar| encoded(*scalar)).collect();
        for (pair, scalars) in keys.windows(2).zip(ordered.windows(2)) {
            assert!(pair[0] < pair[1], "{scalars:?}");
        }
    }

    #[test]
    fn equal_numbers_have_one_key() {
        for number in [0, 1, -7, 1 << 53, i64::MIN] {
            assert_eq!(encoded(ScalarRef::Int(number)), encoded(ScalarRef::Double(number as f64)));
        }
        assert_eq!(encoded(ScalarRef::Double(-0.0)), encoded(ScalarRef::Int(0)));
    }
}
