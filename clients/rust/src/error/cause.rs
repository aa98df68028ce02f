//! The reasons for which a call has no answer of the server.

use std::error::Error;
use std::iter::successors;

use h2::Reason;
use tonic::{ConnectError, Status};
use tower::buffer::error::Closed;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// There was no connection, or it ended before the server saw the call.
    Unconnected,
    /// The server did not take the call, and keeps the connection.
    Refused,
    /// The connection ended. The server may have seen the call.
    Disconnected,
    /// The call alone ended. The server may have seen it.
    Ended,
}

impl Loss {
    /// The loss that a status of the transport tells.
    pub fn of(status: &Status) -> Self {
        let causes = successors(status.source(), |&cause| cause.source());
        causes.into_iter().find_map(of_cause).unwrap_or(Self::Ended)
    }

    /// Whether the server cannot have seen the call.
    pub fn is_never_sent(self) -> bool {
        matches!(self, Self::Unconnected | Self::Refused)
    }

    /// Whether the connection is of no more use.
    pub fn is_of_connection(self) -> bool {
        matches!(self, Self::Unconnected | Self::Disconnected)
    }

    pub fn text(self) -> &'static str {
        match self {
            Self::Unconnected => "the server cannot be reached",
            Self::Refused => "the server does not take calls",
            Self::Disconnected => "the connection was lost",
            Self::Ended => "the call ended without an answer of the server",
        }
    }
}

fn of_cause(cause: &(dyn Error + 'static)) -> Option<Loss> {
    if cause.is::<ConnectError>() || cause.is::<Closed>() {
        return Some(Loss::Unconnected);
    }
    if let Some(error) = cause.downcast_ref::<h2::Error>() {
        return Some(of_frames(error));
    }
    let error = cause.downcast_ref::<hyper::Error>()?;
    // A request that has left the queue of the connection is never cancelled.
    match error.is_canceled() {
        true => Some(Loss::Unconnected),
        false if error.source().is_some_and(|cause| cause.is::<h2::Error>()) => None,
        false => Some(Loss::Disconnected),
    }
}

fn of_frames(error: &h2::Error) -> Loss {
    match error.is_remote() {
        // Its streams up to the last one that the server saw go on without this error.
        true if error.is_go_away() => Loss::Unconnected,
        true if error.reason() == Some(Reason::REFUSED_STREAM) => Loss::Refused,
        _ if error.is_reset() => Loss::Ended,
        _ => Loss::Disconnected,
    }
}
