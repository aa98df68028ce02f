//! The failures of commands.

use std::error::Error;
use std::io;
use std::iter::successors;

use tonic::Status;

use crate::config::SettingErrors;

/// The reason why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The configuration is wrong.
    Config(SettingErrors),
    /// The arguments contradict each other.
    Usage(String),
    /// A call failed.
    Call(Box<FailedCall>),
    /// Any other failure.
    Other(String),
    /// A dry run found changes, and printed them.
    WouldChange,
    /// The error was already printed.
    AlreadyReported,
    /// The reader of standard output closed it.
    PipeClosed,
    /// Ctrl-C, after everything was printed.
    Interrupted,
}

/// A call that failed.
#[derive(Debug)]
pub struct FailedCall {
    /// The server's status, or that of a call without an answer.
    pub status: Status,
    /// The request id of a change that may have happened.
    pub request_id: Option<String>,
    /// Whether answers are printed as JSON.
    pub json: bool,
}

impl Failure {
    /// The failure of a command that is to be run again, and takes no request id.
    pub fn without_request_id(self) -> Self {
        match self {
            Self::Call(call) => Self::Call(Box::new(FailedCall { request_id: None, ..*call })),
            failure => failure,
        }
    }
}

impl From<SettingErrors> for Failure {
    fn from(errors: SettingErrors) -> Self {
        Failure::Config(errors)
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        let status =
            if is_connection_closed(&status) { Status::unknown(CONNECTION_CLOSED) } else { status };
        Failure::Call(Box::new(FailedCall { status, request_id: None, json: false }))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::PipeClosed,
            _ => Failure::Other(format!("cannot write: {error}")),
        }
    }
}

/// The message of [`is_connection_closed`].
pub const CONNECTION_CLOSED: &str = "the connection was closed before the call was sent";

/// Whether the connection was closed before it accepted the call.
pub fn is_connection_closed(status: &Status) -> bool {
    let causes = successors(status.source(), |&cause| cause.source());
    causes.filter_map(|cause| cause.downcast_ref::<hyper::Error>()).any(hyper::Error::is_canceled)
}
