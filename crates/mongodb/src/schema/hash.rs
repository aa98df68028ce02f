//! MongoDB's hash for `{ _id: "hashed" }`: the first half of an MD5 over a seed, the canonical type
//! of the value, and the value as in BSON ("Hashed Indexes" in MongoDB's manual).

use md5::{Digest, Md5};
use mongodb::bson::RawBsonRef;

/// The seed of all hashed indexes.
const SEED: i32 = 0;
/// The canonical types of strings and of binary values.
const STRING: i32 = 15;
const BINARY: i32 = 30;

/// The hash of a string or a binary value, by which a hashed index orders it; `None` for values of
/// other types.
pub fn hash(value: RawBsonRef<'_>) -> Option<i64> {
    let begin = |kind: i32, bytes: usize| {
        let digest = Md5::new().chain_update(SEED.to_le_bytes()).chain_update(kind.to_le_bytes());
        digest.chain_update((bytes as i32).to_le_bytes())
    };
    let digest = match value {
        RawBsonRef::String(text) => {
            begin(STRING, text.len() + 1).chain_update(text).chain_update([0])
        }
        RawBsonRef::Binary(binary) => begin(BINARY, binary.bytes.len())
            .chain_update([binary.subtype.into()])
            .chain_update(binary.bytes),
        _ => return None,
    };
    digest.finalize().first_chunk().map(|first| i64::from_le_bytes(*first))
}
