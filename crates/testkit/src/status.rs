//! The error details of failed calls.

use std::collections::BTreeMap;

use polynym_proto::v1::{batch_get_users_response, batch_resolve_identities_response};
use tonic::{Code, Status};
use tonic_types::StatusExt;

/// The code, the reason, the invalid fields and the metadata of a failed call.
#[derive(Debug, PartialEq, Eq)]
pub struct StatusDetails {
    pub code: Code,
    pub reason: String,
    pub fields: Vec<String>,
    pub metadata: BTreeMap<String, String>,
    pub retry: bool,
}

impl StatusDetails {
    pub fn new(code: Code, reason: &str) -> Self {
        let (fields, metadata) = (Vec::new(), BTreeMap::new());
        Self { code, reason: reason.to_owned(), fields, metadata, retry: false }
    }

    pub fn field(mut self, field: &str) -> Self {
        self.fields.push(field.to_owned());
        self
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.metadata.insert(name.to_owned(), value.to_owned());
        self
    }
}

/// Reads a status sent by this server.
pub fn status_details(status: Status) -> StatusDetails {
    let details = status.get_error_details();
    let info = details.error_info().unwrap_or_else(|| panic!("no ErrorInfo in {status:?}"));
    assert_eq!(info.domain, "polynym");

    let violations =
        details.bad_request().map(|bad| bad.field_violations.as_slice()).unwrap_or_default();
    StatusDetails {
        code: status.code(),
        reason: info.reason.clone(),
        fields: violations.iter().map(|violation| violation.field.clone()).collect(),
        metadata: info.metadata.clone().into_iter().collect(),
        retry: details.retry_info().is_some(),
    }
}

/// A batch item: the display name of the user, or code, reason and fields.
pub type Item = Result<String, (Code, String, Vec<String>)>;

pub fn outcome(result: batch_resolve_identities_response::Result) -> Item {
    use batch_resolve_identities_response::result::Outcome;
    match result.outcome.unwrap() {
        Outcome::Found(found) => Ok(found.user.unwrap().display_name),
        Outcome::Error(status) => Err(item(status)),
    }
}

pub fn got(result: batch_get_users_response::Result) -> Item {
    use batch_get_users_response::result::Outcome;
    match result.outcome.unwrap() {
        Outcome::Found(found) => Ok(found.user.unwrap().display_name),
        Outcome::Error(status) => Err(item(status)),
    }
}

pub fn item(status: polynym_proto::google::rpc::Status) -> (Code, String, Vec<String>) {
    let bytes = prost::Message::encode_to_vec(&status).into();
    let details =
        status_details(Status::with_details(Code::from(status.code), status.message, bytes));
    (details.code, details.reason, details.fields)
}
