//! The content of tokens: the query, the time of issue and a position.

use std::time::Duration;

use prost::Message;

use super::key::TokenKey;
use crate::error::{Error, Invalid};
use crate::timestamp::Timestamp;

/// The lifetime of a page token.
const PAGE_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The position in one kind of token. The numbers of its fields begin at 3.
pub trait TokenPayload: Message + Default {
    /// The number of this kind of token. A token of one kind is not a token of another.
    const KIND: u64;
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
    pub fn seal(&self, key: &TokenKey) -> String {
        let header = Header { query: self.query, issued: self.issued.as_millis() };
        let message = [header.encode_to_vec(), self.payload.encode_to_vec()].concat();
        key.seal(T::KIND, &message)
    }

    /// Reads the output of [`SealedToken::seal`]; none for any other text.
    pub fn open(key: &TokenKey, text: &str) -> Option<Self> {
        let message = key.open(T::KIND, text)?;
        let Header { query, issued } = Header::decode(&*message).ok()?;
        let payload = T::decode(&*message).ok()?;
        Some(Self { query, issued: Timestamp::from_millis(issued), payload })
    }

    /// Reads the position from a page token of this query; none from the empty token of the first
    /// page.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the token is of another store or kind, belongs to another query, or is
    /// older than a day.
    pub fn open_page(
        key: &TokenKey,
        text: &str,
        query: u64,
        now: Timestamp,
    ) -> Result<Option<T>, Error> {
        if text.is_empty() {
            return Ok(None);
        }
        let token = Self::open(key, text).ok_or_else(foreign_page_token)?;
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
