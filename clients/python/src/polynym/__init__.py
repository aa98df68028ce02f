"""Client of Polynym: any name of a user finds the user.

`Client` is for threads, `AsyncClient` for asyncio.
"""

from polynym import reasons
from polynym._async_client import AsyncClient
from polynym._client import Client
from polynym._lookups import Answer, Consistency, Found
from polynym._rules import Attempt
from polynym._settings import VERSION
from polynym._watch import AsyncWatch, Watch, WatchEvent, event_type
from polynym.errors import (
    Aborted,
    AlreadyExists,
    Cancelled,
    Closed,
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

__version__ = VERSION

__all__ = [
    "Aborted",
    "AlreadyExists",
    "Answer",
    "AsyncClient",
    "AsyncWatch",
    "Attempt",
    "Cancelled",
    "Client",
    "Closed",
    "Consistency",
    "DeadlineExceeded",
    "FailedPrecondition",
    "Found",
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
    "__version__",
    "email",
    "event_type",
    "handle",
    "phone",
    "reasons",
    "social",
    "url",
]
