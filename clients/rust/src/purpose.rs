//! Why a call is made: the headers with its reason, and with the operation that it belongs to.
//!
//! ```
//! use polynym_client::purpose::{REASON, encode};
//! use polynym_client::v1::DisableUserRequest;
//!
//! let mut request = tonic::Request::new(DisableUserRequest::default());
//! request.metadata_mut().insert(REASON, encode("left the company")?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use tonic::metadata::errors::InvalidMetadataValue;
use tonic::metadata::{Ascii, MetadataValue};

/// The header with the reason of a call, in the caller's words.
pub const REASON: &str = "polynym-reason";
/// The header with the id that all calls of one operation have.
pub const OPERATION_ID: &str = "polynym-operation-id";
/// The characters that are sent as `%` and two hexadecimal digits, with all that are not ASCII.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

/// The value of a header with a text: percent-encoded UTF-8.
///
/// # Errors
/// The text cannot be sent.
pub fn encode(text: &str) -> Result<MetadataValue<Ascii>, InvalidMetadataValue> {
    utf8_percent_encode(text, ENCODED).to_string().parse()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_texts_can_be_sent() {
        assert_eq!(encode("50% größer: left").unwrap(), "50%25 gr%C3%B6%C3%9Fer: left");
        assert_eq!(encode("two\nlines\u{7f}").unwrap(), "two%0Alines%7F");
    }
}
