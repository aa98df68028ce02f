//! The reason of a change, in the words of the person who makes it.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use tonic::Request;

use crate::failure::Failure;

/// The header with the reason, percent-encoded.
const HEADER: &str = "polynym-reason";
/// The characters that are sent as `%` and two hexadecimal digits, with all that are not ASCII.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

/// A call with a reason, if one is given.
///
/// # Errors
/// The reason has characters that cannot be sent.
pub fn with_reason<T>(message: T, reason: &str) -> Result<Request<T>, Failure> {
    let mut request = Request::new(message);
    if !reason.is_empty() {
        let encoded = utf8_percent_encode(reason, ENCODED).to_string().parse();
        let wrong = |_| Failure::Form("The reason has characters that cannot be sent.".to_owned());
        request.metadata_mut().insert(HEADER, encoded.map_err(wrong)?);
    }
    Ok(request)
}
