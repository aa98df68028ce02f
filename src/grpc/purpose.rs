//! The purpose of a call: the headers `polynym-reason` and `polynym-operation-id`.

use http::HeaderMap;
use percent_encoding::percent_decode;
use tonic::Status;

use super::status::status;
use polynym_access::CallPurpose;
use polynym_directory::{
    Error, Invalid, Purpose, service::purpose::OPERATION_ID_HEADER, service::purpose::REASON_HEADER,
};

/// Reads and checks the purpose of a call.
pub fn read(headers: &HeaderMap) -> Result<CallPurpose, Status> {
    let purpose = CallPurpose {
        reason: text(headers, REASON_HEADER)?,
        operation_id: text(headers, OPERATION_ID_HEADER)?,
    };
    of(&purpose).check().map_err(status)?;
    Ok(purpose)
}

/// The purpose as the directory takes it.
pub fn of(purpose: &CallPurpose) -> Purpose<'_> {
    Purpose { reason: &purpose.reason, operation_id: &purpose.operation_id }
}

fn text(headers: &HeaderMap, name: &'static str) -> Result<String, Status> {
    let Some(value) = headers.get(name) else { return Ok(String::new()) };
    let decoded = percent_decode(value.as_bytes()).decode_utf8();
    let wrong = |_| status(Error::invalid(Invalid::Field, name, "is no percent-encoded UTF-8"));
    decoded.map(|text| text.into_owned()).map_err(wrong)
}
