"""Watches, which resume by themselves when their connection is lost."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import NamedTuple, cast

import grpc

from polynym import v1
from polynym._async_calls import AsyncCalls, AsyncStream, is_cancelled
from polynym._calls import Calls, Stream
from polynym._rules import Patience, Rules, backoff, is_retryable
from polynym.errors import PolynymError, closed
from polynym.v1.stubs import WATCH

LONGEST_BACKOFF = 5.0
FIRST_RESPONSE = 10.0
"""The seconds within which a server must answer a watch for the first time."""
LONGEST_SILENCE = 45.0
"""The seconds that a watch waits for a later response: a server sends one every 15 seconds."""
RECENT = 1000
"""How many delivered events are remembered, to recognise them when they are repeated."""


ENDED = PolynymError("the server ended the stream", code="UNAVAILABLE")
"""The error of a stream that ends without one."""


class WatchEvent(NamedTuple):
    """An event, and the token with which a later watch resumes after it."""

    event: v1.Event
    resume_token: str

    @property
    def type(self) -> v1.EventType:
        """The kind of the event."""
        return event_type(self.event)


def event_type(event: v1.Event) -> v1.EventType:
    """Returns the kind of an event: that of its `change`. Of a later version: unspecified.

    It is a value of `v1.EventType`, and prints as its name.
    """
    name = event.WhichOneof("change")
    number = event.DESCRIPTOR.fields_by_name[name].number if name else v1.EVENT_TYPE_UNSPECIFIED
    return cast(v1.EventType, NamedEventType(number))


class NamedEventType(int):
    """The number of a kind of event, as that of `v1.EventType`, which prints as its name."""

    def __str__(self) -> str:
        return v1.EventType.Name(cast(v1.EventType, self))

    __repr__ = __str__


class Progress:
    """What a watch has seen so far."""

    def __init__(self, request: v1.WatchRequest, rules: Rules) -> None:
        self._request = request
        self._rules = rules
        self._patience = Patience(rules, rules.deadline(None))
        self._failures = 0
        self._is_first = True
        self._has_answer = False
        self._recent: set[str] = set()
        self._order: deque[str] = deque()

    @property
    def resume_token(self) -> str:
        """The token of the last response, or the one that the watch began with."""
        return self._request.resume_token

    def request(self) -> v1.WatchRequest:
        """Returns the request that begins or resumes the watch."""
        self._has_answer = False
        copy = v1.WatchRequest()
        copy.CopyFrom(self._request)
        return WATCH.prepare(copy, self._rules.tenant)

    def accept(self, response: v1.WatchResponse) -> WatchEvent | None:
        """Records a response. Returns its event, if it has one that is not repeated."""
        self._request.resume_token = response.resume_token
        self._failures = 0
        self._is_first = False
        self._has_answer = True
        if not response.HasField("event") or not self._is_new(response.event.event_id):
            return None
        return WatchEvent(response.event, response.resume_token)

    def _is_new(self, event_id: str) -> bool:
        if event_id in self._recent:
            return False
        self._recent.add(event_id)
        self._order.append(event_id)
        if len(self._order) > RECENT:
            self._recent.remove(self._order.popleft())
        return True

    def delay(self, error: PolynymError) -> float | None:
        """Returns the seconds until the watch resumes after an error. None: it ends."""
        if not is_retryable(error):
            return None
        if self._is_first and error.is_never_sent:
            return self._patience.delay()
        self._failures += 1
        if self._is_first and self._failures > self._rules.retries:
            return None
        if self._has_answer and error.reason == "WATCH_ENDED":
            return 0.0
        return backoff(error, self._failures, LONGEST_BACKOFF)


class Watchdog:
    """Ends a stream whose server is silent for too long, from a thread of its own."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        self._limit = time.monotonic() + FIRST_RESPONSE
        self._stopped = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def expect(self) -> None:
        """A response is expected from now on."""
        self._limit = time.monotonic() + LONGEST_SILENCE

    def rest(self) -> None:
        """Nobody waits for a response."""
        self._limit = math.inf

    def stop(self) -> None:
        """The stream has ended."""
        self._stopped.set()

    def _run(self) -> None:
        while (left := self._limit - time.monotonic()) > 0:
            if self._stopped.wait(min(left, LONGEST_SILENCE)):
                return
        self._end()


def watch_request(
    resume_token: str, user_ids: list[str], types: list[v1.EventType | str], tenant: str
) -> v1.WatchRequest:
    """Returns the request that begins a watch."""
    return v1.WatchRequest(resume_token=resume_token, user_ids=user_ids, types=types, tenant=tenant)


class Watch(Iterator[WatchEvent]):
    """Yields events with their tokens, and resumes by itself when the connection is lost.

    Entering it as a context manager waits until the watch has begun: changes that are acknowledged
    after that are among its events. Leaving it ends the watch.
    """

    def __init__(self, calls: Calls, progress: Progress) -> None:
        self._calls = calls
        self._progress = progress
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._stream: Stream | None = None
        self._watchdog: Watchdog | None = None
        self._early: WatchEvent | None = None

    @property
    def resume_token(self) -> str:
        """The token with which a later watch resumes after what was received so far."""
        return self._progress.resume_token

    def close(self) -> None:
        """Ends the watch. Another thread may wait for an event: its iteration ends."""
        with self._lock:
            self._closed.set()
            if self._watchdog is not None:
                self._watchdog.stop()
            if self._stream is not None:
                self._stream.cancel()

    def __enter__(self) -> Watch:
        with contextlib.suppress(StopIteration):
            self._early = self._receive()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __iter__(self) -> Watch:
        return self

    def __next__(self) -> WatchEvent:
        event, self._early = self._early, None
        while event is None:
            event = self._receive()
        return event

    def _receive(self) -> WatchEvent | None:
        """Waits for a response, of this connection or the next."""
        while True:
            try:
                response = self._next_response()
                if not self._closed.is_set():
                    return self._progress.accept(response)
                error = ENDED
            except StopIteration:
                error = ENDED
            except (grpc.RpcError, PolynymError) as fault:
                error = self._calls.rules.error_of(fault)
            self._end_stream(error)
            self._wait_before_resuming(error)

    def _end_stream(self, error: PolynymError) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.end(error)
        if self._watchdog is not None:
            self._watchdog.stop()

    def _wait_before_resuming(self, error: PolynymError) -> None:
        delay = None if self._closed.is_set() else self._progress.delay(error)
        if delay is not None and not self._closed.wait(delay):
            return
        is_closed = self._closed.is_set()
        self.close()
        if is_closed:
            raise StopIteration
        raise error

    def _give_up(self, stream: Stream) -> None:
        """Ends a stream without an answer. The next one has a new connection."""
        stream.replace_connection()
        stream.cancel()

    def _next_response(self) -> v1.WatchResponse:
        stream = self._stream
        if stream is None:
            stream = self._open()
        elif self._watchdog is not None:
            self._watchdog.expect()
        response: v1.WatchResponse = next(stream)
        if self._watchdog is not None:
            self._watchdog.rest()
        return response

    def _open(self) -> Stream:
        if self._closed.is_set():
            raise StopIteration
        request = self._progress.request()
        stream = Stream(self._calls, "unary_stream", WATCH, request, None, ())
        with self._lock:
            if self._closed.is_set():
                stream.cancel()
                raise StopIteration
            self._stream = stream
            self._watchdog = Watchdog(lambda: self._give_up(stream))
            return stream


class AsyncWatch(AsyncIterator[WatchEvent]):
    """Yields events with their tokens, and resumes by itself when the connection is lost.

    Entering it as a context manager waits until the watch has begun: changes that are acknowledged
    after that are among its events. Leaving it ends the watch.
    """

    def __init__(self, calls: AsyncCalls, progress: Progress) -> None:
        self._calls = calls
        self._progress = progress
        self._is_closed = False
        self._stream: AsyncStream | None = None
        self._responses: AsyncIterator[v1.WatchResponse] | None = None
        self._early: WatchEvent | None = None

    @property
    def resume_token(self) -> str:
        """The token with which a later watch resumes after what was received so far."""
        return self._progress.resume_token

    def close(self) -> None:
        """Ends the watch. Its iteration ends."""
        self._is_closed = True
        if self._stream is not None:
            self._stream.cancel()

    async def __aenter__(self) -> AsyncWatch:
        self._early = await self._receive()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __aiter__(self) -> AsyncWatch:
        return self

    async def __anext__(self) -> WatchEvent:
        event, self._early = self._early, None
        while event is None:
            if self._is_closed:
                raise StopAsyncIteration
            event = await self._receive()
        return event

    async def _receive(self) -> WatchEvent | None:
        """Waits for a response, of this connection or the next. Returns its event, if any."""
        while not self._is_closed:
            try:
                return self._progress.accept(await self._next_response())
            except asyncio.TimeoutError:
                if self._stream is not None:
                    self._stream.replace_connection()
                error = ENDED
            except StopAsyncIteration:
                error = ENDED
            except (grpc.RpcError, PolynymError) as fault:
                error = self._calls.rules.error_of(fault)
            except asyncio.CancelledError:
                error = self._error_of_closing()
            self._end_stream(error)
            if self._is_closed:
                break
            await self._wait_before_resuming(error)
        return None

    def _error_of_closing(self) -> PolynymError:
        """Returns the error of a watch that is closed itself or with its client."""
        is_own_end = self._is_closed and not is_cancelled(unless_known=False)
        if is_own_end or (self._calls.rules.is_closed and not is_cancelled()):
            return closed()
        raise

    def _end_stream(self, error: PolynymError) -> None:
        stream, self._stream, self._responses = self._stream, None, None
        if stream is not None:
            stream.end(error)

    async def _wait_before_resuming(self, error: PolynymError) -> None:
        delay = self._progress.delay(error)
        if delay is None:
            self.close()
            raise error
        await asyncio.sleep(delay)

    async def _next_response(self) -> v1.WatchResponse:
        if self._responses is not None:
            # A server that is silent counts as lost.
            return await asyncio.wait_for(anext(self._responses), LONGEST_SILENCE)
        request = self._progress.request()
        self._stream = AsyncStream(self._calls, "unary_stream", WATCH, request, None, ())
        responses: AsyncIterator[v1.WatchResponse] = await self._stream.begin()
        if self._is_closed:
            raise StopAsyncIteration
        first = await asyncio.wait_for(anext(responses), FIRST_RESPONSE)
        self._responses = responses
        return first
