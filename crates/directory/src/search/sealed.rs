//! Tokens that a caller gives back unchanged: the query, the time of issue and a position, with a
//! checksum, as text.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use prost::Message;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::error::{Error, Invalid};
use crate::timestamp::Timestamp;

/// The lifetime of a page token.
const PAGE_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The maximum size of a token.
const MAX_TOKEN_BYTES: usize = 32 << 10;

/// The position in one kind of token. The numbers of its fields begin at 3.
pub trait TokenPayload: Message + Default {
    /// The seed of the checksum: a different one for each kind of token.
    const SEED: u64;
    /// The error message for a token of another query.
    const OTHER_QUERY: &'static str;
}

/// A token for one query.
pub struct SealedToken<T> {
    /// The hash of the query.
    pub query: u64,
    /// The time of issue.
    pub issued: Timestamp,
    /// The position in the results of the query.
    pub payload: T,
}

#[derive(Clone, PartialEq, Message)]
struct Header {
    #[prost(fixed64, tag = "1")]
    query: u64,
    #[prost(int64, tag = "2")]
    issued: i64,
}

impl<T: TokenPayload> SealedToken<T> {
    /// The token as text.
    pub fn seal(&self) -> String {
        let header = Header { query: self.query, issued: self.issued.as_millis() };
        let mut bytes = [header.encode_to_vec(), self.payload.encode_to_vec()].concat();
        bytes.extend(xxh3_64_with_seed(&bytes, T::SEED).to_le_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads the output of [`SealedToken::seal`]; none for any other text.
    pub fn open(text: &str) -> Option<Self> {
        if text.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (message, checksum) = bytes.split_last_chunk()?;
        if u64::from_le_bytes(*checksum) != xxh3_64_with_seed(message, T::SEED) {
            return None;
        }
        let Header { query, issued } = Header::decode(message).ok()?;
        let payload = T::decode(message).ok()?;
        Some(Self { query, issued: Timestamp::from_millis(issued), payload })
    }

    /// Reads the position from a page token of this query; none from the empty token of the first
    /// page.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the token is damaged, belongs to another query, or is older than a
    /// day.
    pub fn open_page(text: &str, query: u64, now: Timestamp) -> Result<Option<T>, Error> {
        if text.is_empty() {
            return Ok(None);
        }
        let token = Self::open(text).ok_or_else(foreign_page_token)?;
        if token.query != query {
            return Err(error(T::OTHER_QUERY));
        }
        if now.millis_after(token.issued) > PAGE_LIFETIME.as_millis() as i64 {
            return Err(error("expired after a day: begin again without one"));
        }
        Ok(Some(token.payload))
    }
}

/// The error for a page token that the method never gave.
pub fn foreign_page_token() -> Error {
    error("is not a token of this method: begin again without one")
}

fn error(rule: &str) -> Error {
    Error::invalid(Invalid::PageToken, "page_token", rule)
}
