"""Client of Polynym: any name of a user finds the user.

`Client` is for threads, `AsyncClient` for asyncio.
"""

from polynym._async_client import AsyncClient, AsyncWatch
from polynym._client import Client, Watch
from polynym._lookups import Answer, Consistency
from polynym._watch import WatchEvent
from polynym.errors import (
    Aborted,
    AlreadyExists,
    Cancelled,
    DeadlineExceeded,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
    OutcomeUnknown,
    OutOfRange,
    PermissionDenied,
    PolynymError,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from polynym.identifiers import email, handle, phone, social, url

__all__ = [
    "Aborted",
    "AlreadyExists",
    "Answer",
    "AsyncClient",
    "AsyncWatch",
    "Cancelled",
    "Client",
    "Consistency",
    "DeadlineExceeded",
    "FailedPrecondition",
    "Internal",
    "InvalidArgument",
    "NotFound",
    "OutOfRange",
    "OutcomeUnknown",
    "PermissionDenied",
    "PolynymError",
    "ResourceExhausted",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "Watch",
    "WatchEvent",
    "email",
    "handle",
    "phone",
    "social",
    "url",
]
