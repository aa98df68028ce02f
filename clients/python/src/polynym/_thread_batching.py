"""Look-ups that threads make at the same time share calls: one thread's call carries the others'.

There is no thread in the background. The threads that wait see when a call takes long.
"""

from __future__ import annotations

import threading
import time
from itertools import zip_longest
from queue import Empty, SimpleQueue

from polynym import v1
from polynym._calls import Calls
from polynym._lookups import Answer, LookUp
from polynym._sharing import (
    ALONE,
    Flight,
    Queue,
    check_identifier,
    go_alone,
    share,
)
from polynym.errors import DeadlineExceeded, PolynymError
from polynym.v1.stubs import RESOLVE_IDENTITY


class Waiting:
    """A caller who waits for the answer of a batch, or for its turn to carry one."""

    __slots__ = ("deadline", "half", "identifier", "inbox", "is_taken")

    def __init__(self, identifier: v1.Identifier, deadline: float) -> None:
        self.identifier = identifier
        self.deadline = deadline
        self.half = (time.monotonic() + deadline) / 2
        self.inbox: SimpleQueue[Answer | Batch | None] = SimpleQueue()
        self.is_taken = False


class Batch:
    """A call that several callers share. The one with the most time carries it."""

    __slots__ = ("callers", "flight")

    def __init__(self, callers: list[Waiting], flight: Flight) -> None:
        self.callers = callers
        self.flight = flight
        for caller in callers:
            caller.is_taken = True
        max(callers, key=lambda caller: caller.half).inbox.put(self)


class ThreadBatcher:
    """Resolves identifiers for callers in threads."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._lock = threading.Lock()
        self._queues: dict[LookUp, Queue[Waiting]] = {}
        self._turns = threading.BoundedSemaphore(ALONE)

    def resolve(
        self, options: LookUp, identifier: v1.Identifier, timeout: float | None
    ) -> v1.ResolveIdentityResponse:
        """Returns the owner of an identifier, or raises the error of the look-up."""
        check_identifier(identifier)
        self._calls.rules.check()
        deadline = self._calls.rules.deadline(timeout)
        with self._lock:
            queue = self._queue(options)
            flight = None if queue.waiting else queue.begin()
            if flight is None:
                caller = Waiting(identifier, deadline)
                queue.waiting[caller] = None
        if flight is None:
            try:
                given = self._wait(options, queue, caller)
            except BaseException:
                # A signal has ended the wait: others may count on this caller.
                self._abandon(options, queue, caller)
                raise
            if isinstance(given, v1.ResolveIdentityResponse):
                return given
            return self._go_alone(given, options, identifier, deadline)
        try:
            return self._resolve_alone(options, identifier, deadline)
        finally:
            self._has_returned(options, queue, flight)

    def _queue(self, options: LookUp) -> Queue[Waiting]:
        queue = self._queues.get(options)
        if queue is None:
            options.batch([])  # Raises if the options are malformed.
            queue = self._queues[options] = Queue()
        return queue

    def _wait(
        self, options: LookUp, queue: Queue[Waiting], caller: Waiting
    ) -> v1.ResolveIdentityResponse | PolynymError | None:
        """Waits for the answer, carries the batch if it is asked to, and sends what waits."""
        until = 0.0
        while True:
            try:
                given = caller.inbox.get(timeout=max(until - time.monotonic(), 0))
            except Empty:
                # No batch is given to a caller who holds the lock.
                with self._lock:
                    self._send_waiting(queue)
                    is_over = time.monotonic() >= caller.half and caller.inbox.empty()
                    if is_over:
                        queue.waiting.pop(caller, None)
                        return None
                    until = caller.half if caller.is_taken else min(caller.half, queue.stalls_at)
            else:
                if not isinstance(given, Batch):
                    return given
                self._carry(options, queue, given)

    def _abandon(self, options: LookUp, queue: Queue[Waiting], caller: Waiting) -> None:
        """Ends a wait. A batch that the caller should have carried is lost."""
        with self._lock:
            queue.waiting.pop(caller, None)
        while not caller.inbox.empty():
            given = caller.inbox.get()
            if isinstance(given, Batch):
                self._answer(options, queue, given, [])

    def _resolve_alone(
        self, options: LookUp, identifier: v1.Identifier, deadline: float, made: int = 0
    ) -> v1.ResolveIdentityResponse:
        request = options.single(identifier)
        rules = self._calls.rules
        return self._calls.run(rules.call(RESOLVE_IDENTITY, request, deadline, made=made))

    def _go_alone(
        self,
        error: PolynymError | None,
        options: LookUp,
        identifier: v1.Identifier,
        deadline: float,
    ) -> v1.ResolveIdentityResponse:
        """Looks an identifier up after an error of a shared call. Raises a final error."""
        again = go_alone(self._calls.rules, error, deadline)
        self._calls.sleep(again.delay)
        if not self._turns.acquire(timeout=max(deadline - time.monotonic(), 0)):
            raise DeadlineExceeded("the deadline has passed", code="DEADLINE_EXCEEDED")
        try:
            return self._resolve_alone(options, identifier, deadline, again.made)
        finally:
            self._turns.release()

    def _has_returned(self, options: LookUp, queue: Queue[Waiting], flight: Flight) -> None:
        """Records that a call has returned, and sends the waiting look-ups."""
        with self._lock:
            queue.end(flight)
            self._send_waiting(queue)
            if queue.is_idle and not queue.waiting and self._queues.get(options) is queue:
                del self._queues[options]

    def _send_waiting(self, queue: Queue[Waiting]) -> None:
        while queue.waiting and (flight := queue.begin()) is not None:
            Batch(queue.take(self._calls.rules.most_items), flight)

    def _carry(self, options: LookUp, queue: Queue[Waiting], batch: Batch) -> None:
        """Makes the call of a batch, and answers its callers."""
        answers: list[Answer | None] = []
        try:
            answers = self._calls.run(share(self._calls.rules, options, batch.callers))
        finally:
            self._answer(options, queue, batch, answers)

    def _answer(
        self, options: LookUp, queue: Queue[Waiting], batch: Batch, answers: list[Answer | None]
    ) -> None:
        """Ends a batch. Callers without an answer go alone."""
        self._has_returned(options, queue, batch.flight)
        for caller, given in zip_longest(batch.callers, answers):
            caller.inbox.put(given)
