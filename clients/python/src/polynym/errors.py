"""Errors of calls. Their texts contain no identifiers and no tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import grpc
from google.rpc import code_pb2, error_details_pb2, status_pb2

DOMAIN = "polynym"
LOST = {"UNAVAILABLE", "CANCELLED", "INTERNAL", "UNKNOWN"}
"""The codes with which the transport reports that it lost a call."""
DETAILS = "grpc-status-details-bin"
NEVER_SENT = re.compile(
    r"failed to connect to all addresses|connections to all backends failing"
    r"|errors resolving|DNS resolution failed|empty address list"
    # Of a stream that the server ended before it saw the call; elsewhere they are details.
    r"|^(Stream removed \()?(GOAWAY received|(RST_STREAM \()?Received RST_STREAM with error code 7)"
)
"""How gRPC says that no server saw a call."""
TEXTS = {
    "UNAVAILABLE": "the connection to the server was lost",
    "DEADLINE_EXCEEDED": "the deadline has passed",
    "RESOURCE_EXHAUSTED": "the answer is larger than the client accepts",
}
"""What failed, if no server made the error. The cause of the error has gRPC's own text."""


class PolynymError(Exception):
    """A call failed."""

    code: str
    """The gRPC code, such as `NOT_FOUND`."""
    reason: str
    """The reason that programs can rely on, such as `IDENTITY_NOT_FOUND`. Empty if no server made
    the error: the connection was lost (`UNAVAILABLE`), or the deadline has passed."""
    message: str
    """The text, for people."""
    field: str
    """The invalid field of the request, if there is one."""
    retry_after: float | None
    """The seconds to wait before a retry, if the server names them."""
    metadata: dict[str, str]
    """Further facts, such as `limit` or `until`."""
    request_id: str
    """The id of the request, if it has one."""
    is_never_sent: bool
    """Whether no server saw the call: a change has not happened."""

    def __init__(
        self,
        message: str = "",
        *,
        code: str = "UNKNOWN",
        reason: str = "",
        field: str = "",
        retry_after: float | None = None,
        metadata: dict[str, str] | None = None,
        request_id: str = "",
        is_never_sent: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.field = field
        self.retry_after = retry_after
        self.metadata = metadata or {}
        self.request_id = request_id
        self.is_never_sent = is_never_sent

    @property
    def owner(self) -> str:
        """The id of the user who owns the identifier, where the caller's role may see it."""
        return self.metadata.get("owner", "")

    @property
    def is_from_server(self) -> bool:
        """Whether a server made the error. Otherwise the transport did."""
        return bool(self.reason)

    def __str__(self) -> str:
        return f"{self.reason or self.code}: {self.message}"

    def copy(self, kind: type[PolynymError] | None = None, **changes: Any) -> PolynymError:
        """Returns the same error, of another type or with changes."""
        values: dict[str, Any] = {
            "message": self.message,
            "code": self.code,
            "reason": self.reason,
            "field": self.field,
            "retry_after": self.retry_after,
            "metadata": dict(self.metadata),
            "request_id": self.request_id,
            "is_never_sent": self.is_never_sent,
        }
        return (kind or type(self))(**{**values, **changes})


class NotFound(PolynymError):
    """Nobody owns the identifier, or the user, notice, hold or tenant does not exist."""


class AlreadyExists(PolynymError):
    """Another user owns the identifier: `owner` names it if the caller may see it."""


class InvalidArgument(PolynymError):
    """A field of the request is invalid: `field` names it."""


class OutOfRange(PolynymError):
    """The time or token is older than what the store keeps."""


class PermissionDenied(PolynymError):
    """The caller's role does not suffice, or the tenant is not one of the caller's."""


class Unauthenticated(PolynymError):
    """The call has no valid token."""


class FailedPrecondition(PolynymError):
    """The state of the user or tenant forbids the call."""


class Aborted(PolynymError):
    """The user was modified since its etag was read."""


class ResourceExhausted(PolynymError):
    """A limit was reached."""


class Unavailable(PolynymError):
    """The server or its store cannot be reached now."""


class DeadlineExceeded(PolynymError):
    """The deadline has passed. Only of calls that change nothing: see `OutcomeUnknown`."""


class Cancelled(PolynymError):
    """The call was cancelled."""


class Closed(Cancelled):
    """The client is closed."""


class Unimplemented(PolynymError):
    """The server or its store does not support the call."""


class Internal(PolynymError):
    """The server has a fault."""


class OutcomeUnknown(PolynymError):
    """A mutation may or may not have happened.

    Calling again with the same `request_id` is safe: it happens once.
    """


TYPES: dict[str, type[PolynymError]] = {
    "NOT_FOUND": NotFound,
    "ALREADY_EXISTS": AlreadyExists,
    "INVALID_ARGUMENT": InvalidArgument,
    "OUT_OF_RANGE": OutOfRange,
    "PERMISSION_DENIED": PermissionDenied,
    "UNAUTHENTICATED": Unauthenticated,
    "FAILED_PRECONDITION": FailedPrecondition,
    "ABORTED": Aborted,
    "RESOURCE_EXHAUSTED": ResourceExhausted,
    "UNAVAILABLE": Unavailable,
    "DEADLINE_EXCEEDED": DeadlineExceeded,
    "CANCELLED": Cancelled,
    "UNIMPLEMENTED": Unimplemented,
    "INTERNAL": Internal,
}


def make_error(code: str, message: str, **attributes: Any) -> PolynymError:
    """Returns an error of the type of its code."""
    return TYPES.get(code, PolynymError)(message, code=code, **attributes)


def from_rpc_error(
    fault: grpc.RpcError, request_id: str = "", servers: Sequence[str] = ()
) -> PolynymError:
    """Returns the error of a failed call to one of the servers."""
    code = fault.code()
    packed = find_details(fault.trailing_metadata() or ())
    status = parse_status(packed)
    details = status.details if status else ()
    error = error_with(code.name, fault.details() or "", details, request_id)
    if error.is_from_server:
        return error
    return of_transport(error, servers).copy(request_id=request_id)


def of_transport(error: PolynymError, servers: Sequence[str]) -> PolynymError:
    """Returns an error that no server made, in words of ours."""
    code = "UNAVAILABLE" if error.code in LOST else error.code
    if code == "UNAVAILABLE" and NEVER_SENT.search(error.message):
        return unreachable(servers)
    text = TEXTS.get(code, "the answer is not that of a Polynym server")
    return error.copy(TYPES.get(code), code=code, message=text)


def unreachable(servers: Sequence[str]) -> Unavailable:
    """Returns the error of a call that had no connection to any of the servers."""
    text = f"none of the servers {', '.join(servers)} can be reached"
    if len(servers) == 1:
        text = f"the server {servers[0]} cannot be reached"
    return Unavailable(text, code="UNAVAILABLE", is_never_sent=True)


def closed(*, is_never_sent: bool = False) -> Closed:
    """Returns the error of a call of a closed client."""
    return Closed("the client is closed", code="CANCELLED", is_never_sent=is_never_sent)


def from_status(status: status_pb2.Status, request_id: str = "") -> PolynymError:
    """Returns the error of an item of a batch."""
    code = code_pb2.Code.Name(status.code)
    return error_with(code, status.message, status.details, request_id)


def find_details(metadata: Iterable[Any]) -> bytes:
    """Returns the packed details in trailing metadata."""
    for entry in metadata:
        if entry[0] == DETAILS:
            return bytes(entry[1])
    return b""


def parse_status(packed: bytes) -> status_pb2.Status | None:
    """Returns the packed status, if there is one and it is well-formed."""
    try:
        return status_pb2.Status.FromString(packed) if packed else None
    except ValueError:
        return None


def error_with(code: str, message: str, details: Iterable[Any], request_id: str) -> PolynymError:
    """Returns an error with the details of a status."""
    error = make_error(code, message, request_id=request_id)
    info = error_details_pb2.ErrorInfo()
    request = error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    for detail in details:
        if detail.Unpack(info):
            if info.domain == DOMAIN:
                error.reason = info.reason
                error.metadata = dict(info.metadata)
        elif detail.Unpack(request):
            if request.field_violations:
                error.field = request.field_violations[0].field
        elif detail.Unpack(retry):
            error.retry_after = retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
    return error
