//! The reason of a change, in the words of the person who makes it.

use polynym_client::purpose::{REASON, encode};
use tonic::Request;

use crate::failure::Failure;

/// A call with a reason, if one is given.
///
/// # Errors
/// The reason has characters that cannot be sent.
pub fn with_reason<T>(message: T, reason: &str) -> Result<Request<T>, Failure> {
    let mut request = Request::new(message);
    if !reason.is_empty() {
        let wrong = |_| Failure::Form("The reason has characters that cannot be sent.".to_owned());
        request.metadata_mut().insert(REASON, encode(reason).map_err(wrong)?);
    }
    Ok(request)
}
