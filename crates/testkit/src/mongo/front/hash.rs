//! MongoDB's hash for `{ _id: "hashed" }`: the first half of an MD5 over a seed, the canonical type
//! of the value, and the value as in BSON.

use md5::{Digest, Md5};
use mongodb::bson::RawBsonRef;

/// The seed of all hashed indexes.
const SEED: i32 = 0;

/// Returns the hash of a string or a binary value, and `None` for other types.
pub fn hash(value: RawBsonRef<'_>) -> Option<i64> {
    let (kind, head, bytes, tail): (i32, Vec<u8>, &[u8], &[u8]) = match value {
        RawBsonRef::String(text) => (15, length(text.len() + 1), text.as_bytes(), &[0]),
        RawBsonRef::Binary(binary) => {
            let head = [length(binary.bytes.len()), vec![binary.subtype.into()]].concat();
            (30, head, binary.bytes, &[])
        }
        _ => return None,
    };

    let digest = Md5::new().chain_update(SEED.to_le_bytes()).chain_update(kind.to_le_bytes());
    let digest = digest.chain_update(head).chain_update(bytes).chain_update(tail).finalize();
    Some(i64::from_le_bytes(digest[..8].try_into().unwrap()))
}

fn length(bytes: usize) -> Vec<u8> {
    (bytes as i32).to_le_bytes().to_vec()
}
