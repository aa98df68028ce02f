//! The statuses of calls that never reach the directory: what breaks the protocol, what is over a
//! bound of the server, and what is too late. Reasons and details are as in `status`.

use std::time::Duration;

use http::Response;
use tonic::body::Body;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

use super::rich_status::{limited, plain, retry, retry_after};

/// The header that names the accepted encodings of messages (gRPC, "Compression").
const ACCEPTED: &str = "grpc-accept-encoding";

/// The status for a call when too many are under way.
pub fn overloaded() -> Status {
    retry(
        Code::ResourceExhausted,
        "OVERLOADED",
        "too many calls are under way: try again a little later",
    )
}

/// The status for a call on one more connection of a caller that has its share of them.
pub fn too_many_connections() -> Status {
    retry(
        Code::ResourceExhausted,
        "RATE_LIMITED",
        "this caller has half of the server's connections: close some, or share them",
    )
}

/// The status for a call of a caller that has half of the server's permits.
pub fn share_taken() -> Status {
    retry(
        Code::ResourceExhausted,
        "RATE_LIMITED",
        "this caller has half of all calls that may be under way: try again a little later",
    )
}

/// The status for a call of a caller that has spent its rate, and gets some back after `wait`.
pub fn rate_spent(wait: Duration) -> Status {
    let message = "this caller makes more calls a second than it may: slow down, or ask for a \
        higher `rate` in the server's credentials file";
    retry_after(Code::ResourceExhausted, "RATE_LIMITED", message, wait)
}

/// The status for a look-up of a caller whose look-ups found nobody too often. It does not depend
/// on what would have been found.
pub fn misses_spent(wait: Duration) -> Status {
    let message = "too many look-ups of this caller found nobody: slow down, or ask for more \
        `misses` in the server's credentials file";
    retry_after(Code::ResourceExhausted, "RATE_LIMITED", message, wait)
}

/// The status for a call whose answer the server cannot hold, since others were not read. The call
/// itself may have been done.
pub fn unread() -> Status {
    let message = "too many answers have not been read yet: read them, and send this call again, \
        with its request_id";
    retry(Code::ResourceExhausted, "ANSWERS_UNREAD", message)
}

/// The status for one more stream on a connection that has enough of them.
pub fn too_many_streams() -> Status {
    retry(
        Code::ResourceExhausted,
        "OVERLOADED",
        "too many streams are open: close one, or try again later",
    )
}

/// The status for a call whose time is over.
pub fn deadline(changes: bool) -> Status {
    let message = match changes {
        true => {
            "the call took too long; a mutation may still happen: send it again with the same \
             request_id"
        }
        false => "the call took too long: try again, or give it more time",
    };
    plain(Code::DeadlineExceeded, "DEADLINE", message)
}

/// The status for a request that is larger than the service accepts.
pub fn message_too_large(limit: usize, value: usize) -> Status {
    let message =
        format!("a message to this service has at most {limit} bytes, this one has {value}");
    limited(Code::ResourceExhausted, "MESSAGE_TOO_LARGE", &message, limit, value)
}

/// The status for a request that is not one well-formed message.
pub fn message_invalid(why: &str) -> Status {
    plain(Code::InvalidArgument, "MESSAGE_INVALID", &format!("the message cannot be read: {why}"))
}

/// The status for a request with more headers than are looked at.
pub fn headers_too_large(limit: usize, value: usize) -> Status {
    let message = format!("the headers of a call have at most {limit} bytes, these have {value}");
    limited(Code::ResourceExhausted, "HEADERS_TOO_LARGE", &message, limit, value)
}

/// The status for a deadline that cannot be read.
pub fn timeout_invalid() -> Status {
    let message = "grpc-timeout: at most eight digits, and one of the units H, M, S, m, u and n";
    plain(Code::InvalidArgument, "TIMEOUT_INVALID", message)
}

/// The status for a message that is compressed.
pub fn compressed() -> Status {
    let message = "compressed messages are not taken: send them as they are";
    let mut status = plain(Code::Unimplemented, "COMPRESSION_UNSUPPORTED", message);
    status.metadata_mut().insert(ACCEPTED, MetadataValue::from_static("identity"));
    status
}

/// The status for a service that is not served.
pub fn unknown_service() -> Status {
    let message = "there is no such service: reflection lists those that there are";
    plain(Code::Unimplemented, "SERVICE_UNKNOWN", message)
}

/// The status for a method that the service does not have.
pub fn unknown_method() -> Status {
    let message = "the service has no such method: reflection lists those that it has";
    plain(Code::Unimplemented, "METHOD_UNKNOWN", message)
}

/// The status for the health of a service that is not served (grpc.health.v1, `Check`).
pub fn unknown_health() -> Status {
    plain(
        Code::NotFound,
        "SERVICE_UNKNOWN",
        "there is no such service: the empty name stands for the whole server",
    )
}

/// The statuses of the RPC library, in the words of this API: they have no details, those of this
/// API have some.
pub fn translated(response: Response<Body>) -> Response<Body> {
    let Some(status) =
        Status::from_header_map(response.headers()).filter(|status| status.details().is_empty())
    else {
        return response;
    };
    let status = match status.code() {
        Code::OutOfRange => plain(Code::ResourceExhausted, "MESSAGE_TOO_LARGE", status.message()),
        Code::Internal => message_invalid(status.message()),
        Code::Unimplemented if response.headers().contains_key(ACCEPTED) => compressed(),
        Code::Unimplemented => unknown_method(),
        _ => return response,
    };

    status.into_http()
}
