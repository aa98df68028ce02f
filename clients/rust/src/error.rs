//! Errors as types.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use polynym_proto::google::rpc;
use prost::Message;
use tonic::{Code, ConnectError, Status};
use tonic_types::StatusExt;

use crate::reasons::OUTCOME_UNKNOWN;

mod cause;
mod item;
mod kind;

use cause::Loss;
pub use kind::Kind;

/// The domain of the server's errors. The transport or a proxy made an error without it.
const DOMAIN: &str = "polynym";

/// The metadata with which tonic marks an answer whose encoding it does not know.
const ACCEPTED_ENCODINGS: &str = "grpc-accept-encoding";

const DEADLINE_PASSED: &str = "the deadline has passed";
const ANSWER_REFUSED: &str = "the answer is larger than the client accepts";

/// The error of a call. Its text has no identifier and no token.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: Kind,
    status: Status,
    /// Why the server did not answer, if it did not.
    loss: Option<Loss>,
    /// The text of an error without a connection, which names the servers.
    unreachable: Option<Arc<str>>,
    reason: String,
    field: Option<String>,
    retry_after: Option<Duration>,
    metadata: HashMap<String, String>,
    request_id: Option<String>,
}

impl Error {
    /// The type.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The code of gRPC; UNAVAILABLE if the connection was lost.
    pub fn code(&self) -> Code {
        if self.0.loss.is_some() { Code::Unavailable } else { self.0.status.code() }
    }

    /// The reason, such as `IDENTITY_TAKEN`; empty if the server did not answer.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// The field of the request that breaks a rule.
    pub fn field(&self) -> Option<&str> {
        self.0.field.as_deref()
    }

    /// The text of the server; without its answer, that of the client.
    pub fn message(&self) -> &str {
        match (self.0.loss, self.code()) {
            (Some(loss), _) => self.0.unreachable.as_deref().unwrap_or(loss.text()),
            (None, Code::DeadlineExceeded) if self.reason().is_empty() => DEADLINE_PASSED,
            (None, Code::OutOfRange) if self.reason().is_empty() => ANSWER_REFUSED,
            (None, _) => self.0.status.message(),
        }
    }

    /// The delay before a retry can succeed.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// All details of the reason.
    pub fn metadata(&self) -> &HashMap<String, String> {
        &self.0.metadata
    }

    /// The user who owns the identifier, where the caller may know it.
    pub fn owner(&self) -> Option<&str> {
        self.0.metadata.get("owner").map(String::as_str)
    }

    /// The request id of a change: it is safe to call again with it.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// The status of gRPC.
    pub fn status(&self) -> &Status {
        &self.0.status
    }

    /// Whether the server did not answer: the connection was lost, or never made.
    pub fn is_lost_on_the_way(&self) -> bool {
        self.0.loss.is_some()
    }

    /// Whether the server cannot have seen the call.
    pub(crate) fn is_never_sent(&self) -> bool {
        self.0.loss.is_some_and(Loss::is_never_sent)
    }

    /// Whether a proxy refused the call, which the server has not seen. An answer whose encoding
    /// the client does not know has the code of a path that a proxy does not know.
    pub(crate) fn is_of_proxy(&self) -> bool {
        let is_unread = || self.0.status.metadata().contains_key(ACCEPTED_ENCODINGS);
        match self.code() {
            Code::Unauthenticated | Code::PermissionDenied => self.reason().is_empty(),
            Code::Unimplemented => self.reason().is_empty() && !is_unread(),
            _ => false,
        }
    }

    /// Whether the connection of the call is of no more use.
    pub(crate) fn is_of_connection(&self) -> bool {
        self.0.loss.is_some_and(Loss::is_of_connection)
    }

    /// Whether another attempt may succeed.
    pub(crate) fn is_retryable(&self) -> bool {
        match self.kind() {
            Kind::Unavailable => true,
            Kind::ResourceExhausted => self.retry_after().is_some(),
            Kind::Unknown => self.reason() == OUTCOME_UNKNOWN,
            _ => false,
        }
    }

    /// The error of a call without a connection, with a text that names the servers.
    pub(crate) fn unreachable(
        cause: Arc<dyn std::error::Error + Send + Sync>,
        text: &Arc<str>,
    ) -> Self {
        let mut status = Status::unavailable(&**text);
        status.set_source(Arc::new(ConnectError(Box::new(cause))));
        Self::from(status).naming_servers(text)
    }

    /// The same error; without a connection, with a text that names the servers.
    pub(crate) fn naming_servers(self, text: &Arc<str>) -> Self {
        if self.0.loss != Some(Loss::Unconnected) {
            return self;
        }
        let unreachable = Some(Arc::clone(text));
        Self(Arc::new(Inner { unreachable, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// The error of a deadline that has passed in the client.
    pub(crate) fn deadline() -> Self {
        Status::deadline_exceeded(DEADLINE_PASSED).into()
    }

    /// The error of an item of a batch.
    pub(crate) fn of_item(item: rpc::Status) -> Self {
        let item = item::without_index(item);
        let details = item.encode_to_vec().into();
        Status::with_details(item.code.into(), item.message, details).into()
    }

    /// The same error of a change with this request id.
    pub(crate) fn of_request(self, request_id: Option<String>) -> Self {
        Self(Arc::new(Inner { request_id, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// The same error of a change that may have happened.
    pub(crate) fn outcome_unknown(self) -> Self {
        Self(Arc::new(Inner { kind: Kind::OutcomeUnknown, ..Arc::unwrap_or_clone(self.0) }))
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        let details = status.get_error_details();
        let info = details.error_info().filter(|info| info.domain == DOMAIN);
        let violation = details.bad_request().and_then(|bad| bad.field_violations.first());
        let retry = details.retry_info().and_then(|info| info.retry_delay);
        // The client itself makes errors of other codes, such as for an answer that is too large.
        let is_lost = info.is_none()
            && matches!(
                status.code(),
                Code::Unavailable | Code::Cancelled | Code::Internal | Code::Unknown
            );
        let loss = is_lost.then(|| Loss::of(&status));
        let kind = if is_lost { Kind::Unavailable } else { Kind::of(status.code()) };
        Self(Arc::new(Inner {
            kind,
            loss,
            unreachable: None,
            reason: info.map(|info| info.reason.clone()).unwrap_or_default(),
            field: violation.map(|violation| violation.field.clone()),
            retry_after: retry,
            metadata: info.map(|info| info.metadata.clone()).unwrap_or_default(),
            request_id: None,
            status,
        }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.message();
        match (self.kind(), self.request_id()) {
            (Kind::OutcomeUnknown, Some(id)) => write!(
                f,
                "the change may or may not have happened: call again with the request id {id} \
                 ({message})"
            ),
            (Kind::OutcomeUnknown, None) => {
                write!(f, "the change may or may not have happened ({message})")
            }
            _ if self.reason().is_empty() => write!(f, "{:?}: {message}", self.kind()),
            _ => write!(f, "{}: {message}", self.reason()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Error");
        debug.field("kind", &self.kind()).field("code", &self.code());
        debug.field("reason", &self.reason()).field("message", &self.message());
        debug.field("request_id", &self.request_id()).finish_non_exhaustive()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0.status)
    }
}
