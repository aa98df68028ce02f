"""The progress of a watch: where it resumes, and what it delivers."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from polynym import v1
from polynym._rules import Rules, backoff, is_retryable
from polynym.errors import PolynymError

LONGEST_BACKOFF = 5.0
FIRST_RESPONSE = 10.0
"""The seconds within which a server must answer a watch for the first time."""
LONGEST_SILENCE = 45.0
"""The seconds that a watch waits for a later response: a server sends one every 15 seconds."""
RECENT = 1000
"""How many delivered events are remembered, to recognise them when they are repeated."""


class WatchEvent(NamedTuple):
    """An event, and the token with which a later watch resumes after it."""

    event: v1.Event
    resume_token: str


class Progress:
    """What a watch has seen so far."""

    def __init__(self, request: v1.WatchRequest, rules: Rules) -> None:
        self._request = request
        self._most_failures = rules.retries
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
        return copy

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
        self._failures += 1
        if self._is_first and self._failures > self._most_failures:
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


ENDED = PolynymError("the server ended the stream", code="UNAVAILABLE")
"""The error of a stream that ends without one."""
