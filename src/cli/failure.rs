//! The failures of commands.

use std::io;

use tonic::Status;

use super::client::{HUNG_UP, was_hung_up};
use crate::config::SettingErrors;

/// Why a command did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// The configuration is wrong.
    Config(SettingErrors),
    /// The arguments contradict each other, in a sentence.
    Usage(String),
    /// A call failed.
    Call(Box<FailedCall>),
    /// Another failure, in a sentence.
    Other(String),
    /// The error was already printed.
    AlreadyReported,
    /// The reader of standard output has closed it.
    PipeClosed,
    /// Ctrl-C, after everything was printed.
    Interrupted,
}

/// A call that failed.
#[derive(Debug)]
pub struct FailedCall {
    /// The server's answer, or the reason why there is none.
    pub status: Status,
    /// The request's id, where sending it again is safe.
    pub request_id: Option<String>,
    /// Whether answers are printed as JSON.
    pub json: bool,
}

impl From<SettingErrors> for Failure {
    fn from(errors: SettingErrors) -> Self {
        Failure::Config(errors)
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        let status = if was_hung_up(&status) { Status::unknown(HUNG_UP) } else { status };
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
