//! Tokens that a caller returns unchanged: bytes with a checksum, as text.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::model::timestamp::Timestamp;

/// The lifetime of a page token.
const PAGE_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The maximum size of a token.
const MAX_TOKEN_BYTES: usize = 32 << 10;

/// Encodes bytes as a token. Each kind of token has its own seed.
pub fn seal(mut bytes: Vec<u8>, seed: u64) -> String {
    bytes.extend(xxh3_64_with_seed(&bytes, seed).to_le_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes a token that [`seal`] encoded with this seed.
pub fn open(text: &str, seed: u64) -> Option<Vec<u8>> {
    if text.len() > MAX_TOKEN_BYTES {
        return None;
    }
    let mut bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (message, checksum) = bytes.split_last_chunk::<8>()?;
    (u64::from_le_bytes(*checksum) == xxh3_64_with_seed(message, seed)).then_some(())?;
    bytes.truncate(bytes.len() - 8);
    Some(bytes)
}

/// Whether a page token that was issued at `issued`, in milliseconds, has expired.
pub fn has_expired(issued: i64, now: Timestamp) -> bool {
    now.millis_after(Timestamp::from_millis(issued)) > PAGE_LIFETIME.as_millis() as i64
}
