//! The categories of errors.

/// The category of an error: a status code of gRPC (gRPC, "Status codes").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// The request is wrong, whatever the store has.
    InvalidArgument,
    /// The request names something that does not exist.
    NotFound,
    /// The request would create something that exists.
    AlreadyExists,
    /// The state of a user, an identity or a tenant forbids the change.
    FailedPrecondition,
    /// Another call came first: read, and try again.
    Aborted,
    /// A limit is reached.
    ResourceExhausted,
    /// The store does not answer, or not yet: try again.
    Unavailable,
    /// The history of the requested time has been removed.
    OutOfRange,
    /// This store cannot do it.
    Unimplemented,
    /// The outcome is not known.
    Unknown,
    /// A fault of the server.
    Internal,
}
