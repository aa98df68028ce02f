//! The types of errors.

use tonic::Code;

/// The type of an error: that of its code, or that a change may have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The call was cancelled.
    Cancelled,
    /// An unknown error.
    Unknown,
    /// The request breaks a rule; `field` may name the field.
    InvalidArgument,
    /// The deadline has passed.
    DeadlineExceeded,
    /// The user, identifier or tenant does not exist.
    NotFound,
    /// Another user owns the identifier.
    AlreadyExists,
    /// The caller's role or tenants do not suffice.
    PermissionDenied,
    /// A limit is reached; `retry_after` may say for how long.
    ResourceExhausted,
    /// The state of the user or of the tenant forbids the call.
    FailedPrecondition,
    /// The user was modified since it was read.
    Aborted,
    /// The history, or a watch, does not reach back that far.
    OutOfRange,
    /// The server does not have the call.
    Unimplemented,
    /// A fault of the server.
    Internal,
    /// The server or its store cannot be reached.
    Unavailable,
    /// Data is lost.
    DataLoss,
    /// The caller's token or certificate is not valid.
    Unauthenticated,
    /// A change may or may not have happened. It is safe to call again with the request id.
    OutcomeUnknown,
}

impl Kind {
    pub(crate) fn of(code: Code) -> Self {
        match code {
            // The server never fails with OK.
            Code::Ok | Code::Unknown => Self::Unknown,
            Code::Cancelled => Self::Cancelled,
            Code::InvalidArgument => Self::InvalidArgument,
            Code::DeadlineExceeded => Self::DeadlineExceeded,
            Code::NotFound => Self::NotFound,
            Code::AlreadyExists => Self::AlreadyExists,
            Code::PermissionDenied => Self::PermissionDenied,
            Code::ResourceExhausted => Self::ResourceExhausted,
            Code::FailedPrecondition => Self::FailedPrecondition,
            Code::Aborted => Self::Aborted,
            Code::OutOfRange => Self::OutOfRange,
            Code::Unimplemented => Self::Unimplemented,
            Code::Internal => Self::Internal,
            Code::Unavailable => Self::Unavailable,
            Code::DataLoss => Self::DataLoss,
            Code::Unauthenticated => Self::Unauthenticated,
        }
    }
}
