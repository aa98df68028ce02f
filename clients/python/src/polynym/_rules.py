"""The rules of a unary call: its deadline, its retries, and whether its outcome is known.

They are generators of steps, which a client performs: in a thread or in an event loop.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import grpc
from google.protobuf.empty_pb2 import Empty

from polynym._methods import Metadata, Method, Request, Response, get_text
from polynym._servers import FORKS, Server, Servers
from polynym._settings import DEFAULT_SERVER, parse_addresses
from polynym.errors import (
    Closed,
    OutcomeUnknown,
    PolynymError,
    closed,
    from_rpc_error,
    unreachable,
)

REJECTED = {"UNAVAILABLE", "RESOURCE_EXHAUSTED", "UNAUTHENTICATED", "PERMISSION_DENIED"}
"""The codes with which a server refuses a call: earlier attempts remain unsettled."""
LEAST_PATIENCE = 0.02
"""The seconds before its deadline in which a call no longer waits for a server."""
FIRST_BACKOFF = 0.1
RETRY_JITTER = 0.2
TOKENS = 10.0
TOKENS_OF_SUCCESS = 0.1
BATCH_ITEMS = 1000
CHECK_HEALTH = Method("/grpc.health.v1.Health/Check", Empty, Empty, reads=True)
"""Its request without a service is empty. The content of the answer does not matter."""


class Send(NamedTuple):
    """Send an attempt. The result is the response.

    Failures are instances of `grpc.RpcError`, or of `PolynymError` if nothing was sent.
    """

    server: Server
    method: Method[Any, Any]
    request: Any
    timeout: float
    metadata: Metadata


class Sleep(NamedTuple):
    """Wait, but not longer than until the client is closed."""

    seconds: float


class Attempt(NamedTuple):
    """An attempt that has ended, as an observer sees it."""

    service: str
    """The service, such as `polynym.v1.DirectoryService`."""
    method: str
    """The method, such as `ResolveIdentity`."""
    number: int
    """1, 2, 3 and so on. An attempt that no server saw does not count: the next has its number."""
    duration: float
    """The seconds that it took."""
    code: str
    """The gRPC code, such as `OK` or `NOT_FOUND`."""
    reason: str
    """The reason of the error. Empty if there is none."""
    server: str
    """The server, as `HOST:PORT`. Empty if no server saw the attempt."""


Observer = Callable[[Attempt], None]
Failure = grpc.RpcError | PolynymError
Result = TypeVar("Result")
Steps = Generator[Send | Sleep, Any, Result]


class Budget:
    """What a client may spend on retries: in a lasting outage a tenth of its calls is repeated."""

    def __init__(self) -> None:
        self._tokens = TOKENS

    @property
    def allows_retry(self) -> bool:
        """Whether there may be a retry."""
        return self._tokens > TOKENS / 2

    def failed(self) -> None:
        """Takes a token for an attempt that would be repeated."""
        self._tokens = max(self._tokens - 1, 0)

    def succeeded(self) -> None:
        """Gives a part of a token for an answer."""
        self._tokens = min(self._tokens + TOKENS_OF_SUCCESS, TOKENS)


@dataclass
class Rules:
    """What all calls of a client share."""

    tenant: str = ""
    timeout: float = 2.0
    retries: int = 2
    token: Callable[[], str | None] = lambda: None
    servers: Servers = field(default_factory=lambda: Servers(parse_addresses(DEFAULT_SERVER)))
    wait_for_ready: bool = True
    first_wait: float = 0.05
    longest_wait: float = 1.0
    observer: Observer | None = None
    is_closed: bool = False
    most_items: int = BATCH_ITEMS
    """How many items of a batch the server accepts."""
    budget: Budget = field(default_factory=Budget)
    _forks: int = field(default_factory=lambda: FORKS.count)

    def __post_init__(self) -> None:
        if not self.timeout > 0:
            raise ValueError("the timeout must be greater than zero")
        if self.retries < 0:
            raise ValueError("retries must not be negative")
        if not 0 < self.first_wait <= self.longest_wait:
            raise ValueError("first_wait must be greater than zero, and longest_wait no less")

    def check(self) -> None:
        """Raises if there can be no calls any more."""
        FORKS.check(self._forks)
        if self.is_closed:
            raise closed(is_never_sent=True)

    def headers(self, metadata: Metadata) -> Metadata:
        """Returns the headers of an attempt."""
        token = self.token()
        return [*metadata, ("authorization", f"Bearer {token}")] if token else metadata

    def deadline(self, timeout: float | None) -> float:
        """Returns the deadline of a call that begins now."""
        return time.monotonic() + (self.timeout if timeout is None else timeout)

    def error_of(self, fault: Failure, request_id: str = "") -> PolynymError:
        """Returns the error of a failed attempt."""
        if isinstance(fault, PolynymError):
            return fault.copy(request_id=request_id)
        error = from_rpc_error(fault, request_id, self.servers.names)
        if self.is_closed and not error.is_from_server:
            return closed().copy(request_id=request_id)
        return error

    def observe(
        self,
        server: Server,
        method: Method[Any, Any],
        began: float,
        error: PolynymError | None,
        number: int = 1,
    ) -> None:
        """Tells the observer of the end of an attempt."""
        if self.observer is None:
            return
        _, service, name = method.path.split("/")
        code, reason = (error.code, error.reason) if error else ("OK", "")
        duration = time.monotonic() - began
        address = "" if error and error.is_never_sent else server.address.name
        try:
            self.observer(Attempt(service, name, number, duration, code, reason, address))
        except Exception:
            logging.getLogger("polynym").exception("the observer failed")

    def call(
        self,
        method: Method[Request, Response],
        request: Request,
        deadline: float,
        metadata: Metadata = (),
        *,
        made: int = 0,
    ) -> Steps[Response]:
        """Calls a method until it succeeds or its error is final.

        `made` attempts precede this call, and count.
        """
        return Call(self, method, request, deadline, metadata, made=made).run()


class Patience:
    """How a call waits until a server can be reached.

    A wait takes at most half of the time that is left, so that a server that is back by the
    deadline is found.
    """

    def __init__(self, rules: Rules, deadline: float) -> None:
        self._rules = rules
        self._deadline = deadline
        self._wait = rules.first_wait

    def delay(self) -> float | None:
        """Returns the seconds until the next try to connect. None: there is no time for one."""
        if self._rules.servers.any_is_near:
            delay = 0.0
        elif self._rules.wait_for_ready:
            delay = min(self._wait, self._rules.longest_wait) * random.uniform(0.5, 1)
            self._wait *= 2
        else:
            return None
        left = self._deadline - time.monotonic()
        return min(delay, left / 2) if left > LEAST_PATIENCE else None


class Call(Generic[Request, Response]):
    """A call with its attempts. `made` attempts precede it; `most` is the limit.

    The end of a shared call by its deadline says nothing of the connection: its callers have left.
    """

    def __init__(
        self,
        rules: Rules,
        method: Method[Request, Response],
        request: Request,
        deadline: float,
        metadata: Metadata = (),
        *,
        made: int = 0,
        most: int | None = None,
        is_shared: bool = False,
    ) -> None:
        self._rules = rules
        self._method = method
        self._request = method.prepare(request, rules.tenant)
        self._deadline = deadline
        self._metadata = metadata
        self.made = made
        """How many attempts have failed."""
        self._is_shared = is_shared
        self._most = rules.retries + 1 if most is None else most
        self._patience = Patience(rules, deadline)
        self._is_counted = True
        self._outcome = Outcome(method, get_text(self._request, "request_id"))

    def run(self) -> Steps[Response]:
        """Makes attempts. A change that is cancelled has `OutcomeUnknown` as its cause."""
        try:
            return (yield from self._attempts())
        except asyncio.CancelledError as cancelled:
            if not self._outcome.is_unknown:
                raise
            raise cancelled from self._outcome.final(closed())

    def _attempts(self) -> Steps[Response]:
        server: Server | None = None
        while True:
            try:
                self._rules.check()
                server = self._rules.servers.next(server)
                return (yield from self._attempt(server))
            except (grpc.RpcError, PolynymError) as fault:
                error = self._rules.error_of(fault, self._outcome.request_id)
                self._outcome.record(error)
                delay = None if self._rules.is_closed else self._delay(error)
                if delay is None:
                    raise self._outcome.final(error) from fault
            if delay:
                yield Sleep(delay)

    def _attempt(self, server: Server) -> Steps[Response]:
        began = time.monotonic()
        timeout = max(self._deadline - began, 0)
        headers = self._rules.headers(self._metadata)
        number = self.made + 1
        before = self._outcome.begin()
        try:
            response: Response = yield Send(server, self._method, self._request, timeout, headers)
        except (grpc.RpcError, PolynymError) as fault:
            self._outcome.is_unknown = before
            error = self._rules.error_of(fault)
            if not (self._is_shared and error.code == "DEADLINE_EXCEEDED"):
                server.failed(error)
            self._is_counted = not is_lost(error) or server.loses(began)
            self._rules.observe(server, self._method, began, error, number)
            raise
        server.answered()
        self._rules.observe(server, self._method, began, None, number)
        self._rules.budget.succeeded()
        return response

    def _delay(self, error: PolynymError) -> float | None:
        """Returns the seconds until the next attempt. None: the error is final."""
        if error.is_never_sent:
            return self._patience.delay()
        budget = self._rules.budget
        self.made += 1
        if not self._outcome.can_retry(error):
            if error.is_from_server:
                budget.succeeded()
            return None
        if self._is_counted and error.retry_after is None:
            budget.failed()
        if self.made >= self._most or not budget.allows_retry:
            return None
        delay = backoff(error, self.made)
        return delay if time.monotonic() + delay < self._deadline else None


def connect(rules: Rules) -> Steps[None]:
    """Waits until a server answers: an error is an answer, too."""
    try:
        yield from rules.call(CHECK_HEALTH, Empty(), rules.deadline(None))
    except Closed:
        raise
    except PolynymError as error:
        if not error.is_from_server and error.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
            raise unreachable(rules.servers.names) from error


class Outcome:
    """Whether the outcome of a call's attempts is known."""

    def __init__(self, method: Method[Any, Any], request_id: str) -> None:
        self.method = method
        self.request_id = request_id
        self.is_unknown = False

    def begin(self) -> bool:
        """Notes that an attempt is under way. Returns whether the outcome was unknown before."""
        before, self.is_unknown = self.is_unknown, not self.method.reads
        return before

    def record(self, error: PolynymError) -> None:
        """Records the failure of an attempt."""
        if is_outcome_unknown(error):
            self.is_unknown = not self.method.reads
        elif error.is_from_server and not is_rejected(error):
            # The server processed the request: its answer settles the earlier attempts.
            self.is_unknown = False

    def can_retry(self, error: PolynymError) -> bool:
        """Returns whether another attempt is safe and may succeed."""
        if self.is_unknown and not self.method.is_repeatable:
            return False
        return is_retryable(error) or (self.is_unknown and error.code == "UNKNOWN")

    def final(self, error: PolynymError) -> PolynymError:
        """Returns the error of the call."""
        if not self.is_unknown:
            return error
        return error.copy(OutcomeUnknown, request_id=self.request_id, is_never_sent=False)


def is_outcome_unknown(error: PolynymError) -> bool:
    """Returns whether an attempt, if it was one of a mutation, may have happened."""
    if error.is_never_sent:
        return False
    if error.code in ("DEADLINE_EXCEEDED", "CANCELLED"):
        return True
    if not error.is_from_server:
        # The library has no room for an answer: RESOURCE_EXHAUSTED.
        return error.code in ("UNAVAILABLE", "RESOURCE_EXHAUSTED")
    return error.reason in ("OUTCOME_UNKNOWN", "ANSWERS_UNREAD")


def is_lost(error: PolynymError) -> bool:
    """Returns whether an attempt was lost with its connection."""
    return error.code == "UNAVAILABLE" and not error.is_from_server and not error.is_never_sent


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
