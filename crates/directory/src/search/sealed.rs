//! Tokens that a caller gives back unchanged: bytes with a checksum, as text.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::model::timestamp::Timestamp;

/// The time in which a page token can be used.
const PAGE_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest token.
const TOKEN_BYTES: usize = 32 << 10;

/// The text of bytes. Each kind of token has another seed.
pub fn seal(mut bytes: Vec<u8>, seed: u64) -> String {
    bytes.extend(xxh3_64_with_seed(&bytes, seed).to_le_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The bytes of a text that [`seal`] made with this seed.
pub fn open(text: &str, seed: u64) -> Option<Vec<u8>> {
    if text.len() > TOKEN_BYTES {
        return None;
    }
    let mut bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (message, checksum) = bytes.split_last_chunk::<8>()?;
    let checksum = u64::from_le_bytes(*checksum);
    (checksum == xxh3_64_with_seed(message, seed)).then_some(())?;
    bytes.truncate(bytes.len() - 8);
    Some(bytes)
}

/// Whether the time of a page token is over that was issued at `issued`, in milliseconds.
pub fn has_expired(issued: i64, now: Timestamp) -> bool {
    now.millis_after(Timestamp::from_millis(issued)) > PAGE_LIFETIME.as_millis() as i64
}
