"""Look-ups that tasks make at the same time share calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from itertools import zip_longest
from typing import Any

from polynym import v1
from polynym._async_calls import AsyncCalls
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
    """A caller who waits for the answer of a batch."""

    __slots__ = ("batch", "deadline", "future", "half", "identifier")

    def __init__(self, identifier: v1.Identifier, deadline: float) -> None:
        self.identifier = identifier
        self.deadline = deadline
        self.half = (time.monotonic() + deadline) / 2
        self.future: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        self.batch: Batch | None = None

    def expire(self) -> None:
        """Ends the wait at half of the caller's time, unless a call is its own."""
        if self.batch is None or len(self.batch.callers) > 1:
            self.settle(None)

    def settle(self, given: Answer | None) -> None:
        """Answers the caller, unless it left."""
        if not self.future.done():
            self.future.set_result(given)


class Batch:
    """A call that several callers share."""

    def __init__(self, callers: list[Waiting], flight: Flight) -> None:
        self.callers = callers
        self.flight = flight
        self.remaining = len(callers)
        self.task: asyncio.Task[None] | None = None
        for caller in callers:
            caller.batch = self

    def leave(self) -> None:
        """Records that a caller no longer waits. The last one cancels the call."""
        self.remaining -= 1
        if self.remaining == 0 and self.task is not None:
            self.task.cancel()


class Batcher:
    """Resolves identifiers for callers of one event loop."""

    def __init__(self, calls: AsyncCalls) -> None:
        self._calls = calls
        self._queues: dict[LookUp, Queue[Waiting]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Semaphore(ALONE)

    async def resolve(
        self, options: LookUp, identifier: v1.Identifier, timeout: float | None
    ) -> v1.ResolveIdentityResponse:
        """Returns the owner of an identifier, or raises the error of the look-up."""
        check_identifier(identifier)
        self._calls.rules.check()
        deadline = self._calls.rules.deadline(timeout)
        queue = self._queues.get(options)
        if queue is None:
            options.batch([])  # Raises if the options are malformed.
            queue = self._queues[options] = Queue()

        flight = None if queue.waiting else queue.begin()
        if flight is None:
            caller = Waiting(identifier, deadline)
            queue.waiting[caller] = None
            self._send_waiting(options, queue)
            given = await self._wait(queue, caller)
            if isinstance(given, v1.ResolveIdentityResponse):
                return given
            return await self._go_alone(given, options, identifier, deadline)
        timer = self._watch_flight(options, queue, flight)
        try:
            return await self._resolve_alone(options, identifier, deadline)
        finally:
            timer.cancel()
            self._has_returned(options, queue, flight)

    async def _wait(self, queue: Queue[Waiting], caller: Waiting) -> Answer | None:
        delay = caller.half - time.monotonic()
        timer = asyncio.get_running_loop().call_later(delay, caller.expire)
        try:
            return await caller.future
        finally:
            timer.cancel()
            if caller.batch is None:
                del queue.waiting[caller]
            else:
                caller.batch.leave()

    async def _resolve_alone(
        self, options: LookUp, identifier: v1.Identifier, deadline: float, made: int = 0
    ) -> v1.ResolveIdentityResponse:
        request = options.single(identifier)
        rules = self._calls.rules
        return await self._calls.run(rules.call(RESOLVE_IDENTITY, request, deadline, made=made))

    async def _go_alone(
        self,
        error: PolynymError | None,
        options: LookUp,
        identifier: v1.Identifier,
        deadline: float,
    ) -> v1.ResolveIdentityResponse:
        """Looks an identifier up after an error of a shared call. Raises a final error."""
        again = go_alone(self._calls.rules, error, deadline)
        await self._calls.sleep(again.delay)
        try:
            await asyncio.wait_for(self._turns.acquire(), max(deadline - time.monotonic(), 0))
        except asyncio.TimeoutError:
            text = "the deadline has passed"
            raise DeadlineExceeded(text, code="DEADLINE_EXCEEDED") from None
        try:
            return await self._resolve_alone(options, identifier, deadline, again.made)
        finally:
            self._turns.release()

    def _watch_flight(
        self, options: LookUp, queue: Queue[Waiting], flight: Flight
    ) -> asyncio.TimerHandle:
        """Sends the waiting look-ups if a call takes long."""
        delay = flight.stalls_at - time.monotonic()
        loop = asyncio.get_running_loop()
        return loop.call_later(delay, self._send_waiting, options, queue)

    def _has_returned(self, options: LookUp, queue: Queue[Waiting], flight: Flight) -> None:
        """Records that a call has returned, and sends the waiting look-ups."""
        queue.end(flight)
        self._send_waiting(options, queue)
        if queue.is_idle and self._queues.get(options) is queue:
            del self._queues[options]

    def _send_waiting(self, options: LookUp, queue: Queue[Waiting]) -> None:
        while queue.waiting and (flight := queue.begin()) is not None:
            batch = Batch(queue.take(self._calls.rules.most_items), flight)
            batch.task = self._spawn(self._carry(options, queue, batch))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _carry(self, options: LookUp, queue: Queue[Waiting], batch: Batch) -> None:
        """Makes the call of a batch, and answers its callers."""
        timer = self._watch_flight(options, queue, batch.flight)
        answers: list[Answer | None] = []
        try:
            answers = await self._calls.run(share(self._calls.rules, options, batch.callers))
        finally:
            timer.cancel()
            self._has_returned(options, queue, batch.flight)
            for caller, given in zip_longest(batch.callers, answers):
                caller.settle(given)
