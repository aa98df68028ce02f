"""The rules of a unary call: its deadline, its retries, and whether its outcome is known.

They are generators of steps, which a client performs: in a thread or in an event loop.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc

from polynym._methods import Metadata, Method, Request, Response, get_text
from polynym.errors import OutcomeUnknown, PolynymError, from_rpc_error

REJECTED = {"UNAVAILABLE", "RESOURCE_EXHAUSTED", "UNAUTHENTICATED", "PERMISSION_DENIED"}
"""The codes with which a server refuses a call: earlier attempts remain unsettled."""
FIRST_BACKOFF = 0.1
SILENT_DEADLINES = 2
"""How many attempts in a row reach their deadlines without an answer on a dead connection."""
RETRY_JITTER = 0.2


@dataclass(frozen=True)
class Send:
    """Send an attempt. The result is the response; failures are instances of `grpc.RpcError`."""

    method: Method[Any, Any]
    request: Any
    timeout: float
    metadata: Metadata


@dataclass(frozen=True)
class Sleep:
    """Wait."""

    seconds: float


Result = TypeVar("Result")
Steps = Generator[Send | Sleep, Any, Result]


@dataclass
class Rules:
    """What all calls of a client share."""

    tenant: str = ""
    timeout: float = 2.0
    retries: int = 2
    token: Callable[[], str | None] = lambda: None
    is_closed: bool = False
    reconnect: Callable[[], None] = lambda: None
    """Lets the next call open a new connection."""
    _has_answered: bool = False
    _unanswered: int = 0

    def answered(self) -> None:
        """Notes that the server has answered on this connection."""
        self._has_answered, self._unanswered = True, 0

    def failed(self, error: PolynymError) -> None:
        """Notes the failure of an attempt. The last of several deadlines ends the connection.

        One that has never answered may be still on its way to the server.
        """
        if error.is_from_server:
            self.answered()
        elif error.code == "DEADLINE_EXCEEDED" and self._has_answered:
            self._unanswered += 1
            if self._unanswered >= SILENT_DEADLINES:
                self.replace_connection()

    def replace_connection(self) -> None:
        """Leaves a connection that seems dead. Calls on it go on."""
        self._has_answered, self._unanswered = False, 0
        self.reconnect()

    def headers(self, metadata: Metadata) -> Metadata:
        """Returns the headers of an attempt."""
        token = self.token()
        return [*metadata, ("authorization", f"Bearer {token}")] if token else metadata

    def deadline(self, timeout: float | None) -> float:
        """Returns the deadline of a call that begins now."""
        return time.monotonic() + (self.timeout if timeout is None else timeout)

    def call(
        self,
        method: Method[Request, Response],
        request: Request,
        deadline: float,
        metadata: Metadata = (),
    ) -> Steps[Response]:
        """Calls a method until it succeeds or its error is final."""
        request = method.prepare(request, self.tenant)
        outcome = Outcome(method, get_text(request, "request_id"))

        for attempt in range(1, self.retries + 2):
            timeout = max(deadline - time.monotonic(), 0)
            try:
                response: Response = yield Send(method, request, timeout, self.headers(metadata))
            except grpc.RpcError as fault:
                error = outcome.record(from_rpc_error(fault, outcome.request_id))
                self.failed(error)
                delay = backoff(error, attempt)
                has_time = attempt <= self.retries and time.monotonic() + delay < deadline
                if self.is_closed or not has_time or not outcome.can_retry(error):
                    raise outcome.final(error) from fault
                yield Sleep(delay)
            else:
                self.answered()
                return response
        raise AssertionError("the last attempt returns or raises")


class Outcome:
    """Whether the outcome of a call's attempts is known."""

    def __init__(self, method: Method[Any, Any], request_id: str) -> None:
        self.method = method
        self.request_id = request_id
        self.is_unknown = False

    def record(self, error: PolynymError) -> PolynymError:
        """Records the failure of an attempt, and returns it."""
        if is_outcome_unknown(error):
            self.is_unknown = not self.method.reads
        elif error.is_from_server and not is_rejected(error):
            # The server processed the request: its answer settles the earlier attempts.
            self.is_unknown = False
        return error

    def can_retry(self, error: PolynymError) -> bool:
        """Returns whether another attempt is safe and may succeed."""
        if self.is_unknown and not self.method.is_repeatable:
            return False
        return is_retryable(error) or (self.is_unknown and error.code == "UNKNOWN")

    def final(self, error: PolynymError) -> PolynymError:
        """Returns the error of the call."""
        return error.copy(OutcomeUnknown) if self.is_unknown else error


def is_outcome_unknown(error: PolynymError) -> bool:
    """Returns whether an attempt, if it was one of a mutation, may have happened."""
    if error.code == "DEADLINE_EXCEEDED":
        return True
    if not error.is_from_server:
        # The library has no room for an answer: RESOURCE_EXHAUSTED.
        return error.code in ("UNAVAILABLE", "RESOURCE_EXHAUSTED") and not is_never_sent(error)
    return error.reason in ("OUTCOME_UNKNOWN", "ANSWERS_UNREAD")


def is_never_sent(error: PolynymError) -> bool:
    """Returns whether there was no connection, as grpc says it, so that no server saw the call."""
    return "failed to connect to all addresses" in error.message


def is_rejected(error: PolynymError) -> bool:
    """Returns whether a server rejected an attempt before it looked at the request."""
    return error.is_from_server and error.code in REJECTED


def is_retryable(error: PolynymError) -> bool:
    """Returns whether another attempt may succeed."""
    if error.code == "RESOURCE_EXHAUSTED":
        return error.retry_after is not None
    return error.code == "UNAVAILABLE"


def backoff(error: PolynymError, attempt: int, longest: float = float("inf")) -> float:
    """Returns the seconds to wait after the failure of an attempt: 1, 2, 3 and so on."""
    if error.retry_after is not None:
        return error.retry_after * (1 + RETRY_JITTER * random.random())
    return random.random() * min(FIRST_BACKOFF * 2.0 ** min(attempt, 30), longest)
