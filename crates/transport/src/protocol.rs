//! The statuses of calls that never reach the directory: protocol errors, exceeded limits and
//! expired deadlines. Reasons and details are as in `status`.

use std::sync::LazyLock;
use std::time::Duration;

use http::{HeaderMap, Response};
use tonic::body::Body;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

use super::rich_status::{limited, plain, retry, retry_after};
use polynym_access::Role;

/// The header that names the accepted encodings of messages (gRPC, "Compression").
const ACCEPTED: &str = "grpc-accept-encoding";
/// The characters of an unknown path that an error repeats.
const MAX_SHOWN_PATH: usize = 100;

/// The status for a call when too many are in flight.
pub fn overloaded() -> Status {
    static STATUS: LazyLock<Status> = LazyLock::new(|| {
        retry(Code::ResourceExhausted, "OVERLOADED", "too many calls are in flight: retry later")
    });
    STATUS.clone()
}

/// The status for a call on a connection beyond the caller's share.
pub fn too_many_connections() -> Status {
    retry(
        Code::ResourceExhausted,
        "RATE_LIMITED",
        "this caller has half of the server's connections: close some, or share them",
    )
}

/// The status for a call of a caller that holds its share of the permits.
pub fn caller_share_exhausted() -> Status {
    static STATUS: LazyLock<Status> = LazyLock::new(|| {
        retry(
            Code::ResourceExhausted,
            "RATE_LIMITED",
            "this caller has half of the calls that may be in flight: retry later",
        )
    });
    STATUS.clone()
}

/// The status for a call beyond the caller's rate, which recovers after `wait`.
pub fn rate_limited(wait: Duration) -> Status {
    let message = "this caller exceeds its calls per second: slow down, or ask for a higher `rate` \
        in the server's credentials file";
    retry_after(Code::ResourceExhausted, "RATE_LIMITED", message, wait)
}

/// The status for a look-up of a caller that exceeds its rate of misses, whether it would find a
/// user or not.
pub fn misses_limited(wait: Duration) -> Status {
    let message = "too many look-ups of this caller found no user in the last second, so that all \
        of its look-ups are refused: retry after the delay in RetryInfo, or have an operator raise \
        `rate = { misses = N }` in the server's credentials file, or --caller-misses";
    retry_after(Code::ResourceExhausted, "RATE_LIMITED", message, wait)
}

/// The status for a notice of a caller whose earlier notices were too large.
pub fn notices_limited(wait: Duration) -> Status {
    let message = "the notices of this caller have too many bytes: send shorter ones, or to fewer \
        recipients a second";
    retry_after(Code::ResourceExhausted, "RATE_LIMITED", message, wait)
}

/// The status for a call whose answer exceeds the memory budget, as the client has not read others.
/// The call itself may have succeeded.
pub fn answers_unread() -> Status {
    let message = "too many answers are unread: read them, then send this call again with its \
        request_id";
    retry(Code::ResourceExhausted, "ANSWERS_UNREAD", message)
}

/// The status for a stream beyond the limits of its connection or of the server.
pub fn too_many_streams() -> Status {
    retry(
        Code::ResourceExhausted,
        "OVERLOADED",
        "too many streams of this kind are open, or too many on this connection: close one, use \
         another connection, or retry later",
    )
}

/// The status for a stream of a caller that has its share of them.
pub fn stream_share_exhausted() -> Status {
    retry(
        Code::ResourceExhausted,
        "RATE_LIMITED",
        "this caller has half of the streams of this kind that may be open: close one, or retry \
         later",
    )
}

/// The status that ends the oldest stream without a credential for a new one.
pub fn stream_evicted() -> Status {
    retry(
        Code::ResourceExhausted,
        "OVERLOADED",
        "a newer stream without a credential has taken the place of this one: retry",
    )
}

/// The status that ends a stream because its connection has grown old.
pub fn connection_old() -> Status {
    let message = "the connection is old: continue on a new one, from the last token, or with the \
        same call if its responses have none";
    retry(Code::Unavailable, "STREAM_ENDED", message)
}

/// The status that ends a stream whose client's certificate has expired or was revoked.
pub fn certificate_distrusted() -> Status {
    let message = "the client's certificate is no longer valid: continue with a new one";
    plain(Code::Unauthenticated, "CREDENTIAL_INVALID", message)
}

/// The status that ends a stream that has not finished in the time of a stop.
pub fn server_stopping() -> Status {
    let message = "the server stops: continue at another one, or once it is back, from the last \
        token, or with the same call if its responses have none";
    retry(Code::Unavailable, "STREAM_ENDED", message)
}

/// The status for a call past its deadline.
pub fn deadline(is_mutation: bool) -> Status {
    let message = match is_mutation {
        true => {
            "the call took too long; the mutation may still succeed: send it again with the same \
             request_id"
        }
        false => "the call took too long: retry, or allow more time",
    };
    plain(Code::DeadlineExceeded, "DEADLINE", message)
}

/// The status for a request that is larger than the service accepts.
pub fn message_too_large(limit: usize, value: usize) -> Status {
    let message =
        format!("a message to this service has at most {limit} bytes, this one has {value}");
    limited(Code::ResourceExhausted, "MESSAGE_TOO_LARGE", &message, limit, value)
}

/// The status for a request without exactly one well-formed message.
pub fn message_invalid(cause: &str) -> Status {
    plain(Code::InvalidArgument, "MESSAGE_INVALID", &format!("the message is invalid: {cause}"))
}

/// The status for a request with too many headers.
pub fn headers_too_large(limit: usize, value: usize) -> Status {
    let message = format!("the headers of a call have at most {limit} bytes, these have {value}");
    limited(Code::ResourceExhausted, "HEADERS_TOO_LARGE", &message, limit, value)
}

/// The status for a malformed timeout.
pub fn timeout_invalid() -> Status {
    let message = "grpc-timeout: write at most eight digits and a unit: H, M, S, m, u or n";
    plain(Code::InvalidArgument, "TIMEOUT_INVALID", message)
}

/// The status for a message that is compressed in a way other than gzip.
pub fn compressed() -> Status {
    let message = "messages may be compressed with gzip only: use it, or send them uncompressed";
    let mut status = plain(Code::Unimplemented, "COMPRESSION_UNSUPPORTED", message);
    status.metadata_mut().insert(ACCEPTED, MetadataValue::from_static("identity,gzip"));
    status
}

/// The status for an HTTP method other than `allowed`. Clients derive its code from the HTTP
/// status, too.
pub fn http_method_wrong(allowed: &str) -> Status {
    let message = format!("the HTTP method must be {allowed}");
    plain(Code::Unknown, "HTTP_METHOD_WRONG", &message)
}

/// The status for a content type that a method does not take.
pub fn content_type_wrong(message: &str) -> Status {
    plain(Code::Unknown, "CONTENT_TYPE_WRONG", message)
}

/// The status for a path of the HTTP listener that is not served.
pub fn unknown_path(path: &str, nearest: Option<&str>) -> Status {
    let shown: String = path.chars().take(MAX_SHOWN_PATH).collect();
    let message = match nearest {
        Some(nearest) => format!("unknown path {shown}: did you mean {nearest}?"),
        None => format!("unknown path {shown}: paths are /package.Service/Method"),
    };
    plain(Code::Unimplemented, "METHOD_UNKNOWN", &message)
}

/// The status for another version of Connect.
pub fn connect_version_invalid() -> Status {
    let message = "connect-protocol-version: only version 1 is supported";
    plain(Code::InvalidArgument, "PROTOCOL_VERSION_INVALID", message)
}

/// The status for a malformed timeout of Connect.
pub fn connect_timeout_invalid() -> Status {
    plain(Code::InvalidArgument, "TIMEOUT_INVALID", "connect-timeout-ms: write at most ten digits")
}

/// The status for an encoding other than gzip in the header `name`.
pub fn encoding_unsupported(name: &str) -> Status {
    let message = format!("{name}: only gzip and identity are supported");
    plain(Code::Unimplemented, "COMPRESSION_UNSUPPORTED", &message)
}

/// The status for a request without exactly one message (Connect protocol, "Streaming-Request").
pub fn message_count_wrong() -> Status {
    plain(Code::Unimplemented, "MESSAGE_INVALID", "this method takes exactly one message")
}

/// The status for a message that is marked as compressed in a stream that is not (Connect protocol,
/// "Enveloped-Message").
pub fn envelope_compressed() -> Status {
    let message = "the message is marked as compressed: send connect-content-encoding";
    plain(Code::Internal, "MESSAGE_INVALID", message)
}

/// The status for a request without exactly one valid host.
pub fn host_invalid() -> Status {
    plain(Code::InvalidArgument, "HOST_INVALID", "send one valid host header")
}

/// The status for a request to another host, where callers need no credentials.
pub fn host_denied() -> Status {
    let message = "without credentials, the server takes requests to localhost alone: start it \
        with --credentials to serve other names";
    plain(Code::PermissionDenied, "HOST_DENIED", message)
}

/// The status for a request from a page of another origin, where callers need no credentials.
pub fn origin_denied() -> Status {
    let message = "pages of other origins may not call this server: name the page's origin with \
        --http-allow-origin";
    plain(Code::PermissionDenied, "ORIGIN_DENIED", message)
}

/// The status for lines that are compressed.
pub fn lines_compressed() -> Status {
    let message = "content-encoding: send the lines without compression";
    plain(Code::Unimplemented, "COMPRESSION_UNSUPPORTED", message)
}

/// The status for a query with a wrong parameter.
pub fn parameter_invalid(message: &str) -> Status {
    plain(Code::InvalidArgument, "FIELD_INVALID", message)
}

/// The status for lines that stop before the end of the body.
pub fn lines_late() -> Status {
    let message = "no further line arrived in time: the lines so far are handled; send the file \
        again, which imports no user twice";
    plain(Code::DeadlineExceeded, "DEADLINE", message)
}

/// The status for an unknown service.
pub fn unknown_service() -> Status {
    let message = "unknown service: use reflection to list services";
    plain(Code::Unimplemented, "SERVICE_UNKNOWN", message)
}

/// The status for a call without a valid credential.
pub fn credential_invalid() -> Status {
    let message = "no valid credential: send `authorization: Bearer TOKEN` with an unexpired token \
        from the server's credentials file, or use a client certificate listed there";
    plain(Code::Unauthenticated, "CREDENTIAL_INVALID", message)
}

/// The status for a call, or a field of it, that requires a higher role.
pub fn role_too_low(what: &str, required: Role) -> Status {
    let message = format!("{what} needs the role {required}: the credential has a lower one");
    plain(Code::PermissionDenied, "ROLE_DENIED", &message)
}

/// The status for an unknown method of a known service.
pub fn unknown_method() -> Status {
    let message = "unknown method: use reflection to list methods";
    plain(Code::Unimplemented, "METHOD_UNKNOWN", message)
}

/// The status for the health of an unknown service (grpc.health.v1, `Check`).
pub fn unknown_health() -> Status {
    plain(
        Code::NotFound,
        "SERVICE_UNKNOWN",
        "unknown service: the empty name means the whole server",
    )
}

/// The trailers that end a body with a status.
pub fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    // Every status of this program is a valid header.
    let _ = status.add_header(&mut trailers);
    trailers
}

/// Translates a status of the RPC library, recognised by its lack of details.
pub fn with_details(response: Response<Body>) -> Response<Body> {
    let Some(status) =
        Status::from_header_map(response.headers()).filter(|status| status.details().is_empty())
    else {
        return response;
    };
    match status.code() {
        Code::Unimplemented if response.headers().contains_key(ACCEPTED) => compressed(),
        Code::Unimplemented => unknown_method(),
        Code::OutOfRange | Code::ResourceExhausted | Code::Internal => of_message(status),
        _ => return response,
    }
    .into_http()
}

/// Translates the status that the RPC library has for a message it cannot read, recognised by its
/// lack of details and of a cause in the connection.
pub fn of_message(status: Status) -> Status {
    let is_of_connection = std::error::Error::source(&status).is_some();
    match status.code() {
        _ if is_of_connection || !status.details().is_empty() => status,
        Code::OutOfRange | Code::ResourceExhausted => {
            plain(Code::ResourceExhausted, "MESSAGE_TOO_LARGE", status.message())
        }
        Code::Internal => message_invalid(status.message()),
        _ => status,
    }
}
