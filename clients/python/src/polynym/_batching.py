"""Automatic batching: look-ups that callers make at the same time share calls.

A look-up goes at once, alone, while fewer than two calls with the same options are under way.
Otherwise it waits, and goes together with the others that wait when one returns. No timer is
involved.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Coroutine
from typing import Any

from polynym import v1
from polynym._async_calls import AsyncCalls
from polynym._lookups import (
    BATCH_BYTES,
    BATCH_ITEMS,
    Answer,
    LookUp,
    answer,
    size_in_batch,
    too_large_limit,
)
from polynym._rules import backoff, is_retryable
from polynym.errors import DeadlineExceeded, PolynymError, make_error
from polynym.v1.stubs import BATCH_RESOLVE_IDENTITIES, RESOLVE_IDENTITY

IN_FLIGHT = 2
"""The maximum number of calls in flight with the same options."""
REPEATED = ("RESOURCE_EXHAUSTED", "UNAVAILABLE")
"""The codes of items that are requested again."""


class Waiting:
    """A caller who waits for the answer of a batch."""

    __slots__ = ("batch", "deadline", "future", "identifier")

    def __init__(self, identifier: v1.Identifier, deadline: float) -> None:
        self.identifier = identifier
        self.deadline = deadline
        self.future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.batch: Batch | None = None

    def expire(self) -> None:
        """Ends the wait at the caller's deadline."""
        self.fail(DeadlineExceeded("the deadline has passed", code="DEADLINE_EXCEEDED"))

    def fail(self, error: PolynymError) -> None:
        """Raises an error in the caller, unless it left."""
        if not self.future.done():
            self.future.set_exception(error)

    def leave(self, queue: Queue) -> None:
        """Ends the wait, answered or not."""
        if self.future.done() and not self.future.cancelled():
            # A caller that is cancelled at this moment does not see its error.
            self.future.exception()
        if self.batch is not None:
            self.batch.leave()
        else:
            queue.waiting.remove(self)

    def settle(self, given: Answer) -> None:
        """Answers the caller, unless it left."""
        if not self.future.done():
            self.future.set_result(given)


class Batch:
    """A call that several callers share."""

    def __init__(self, callers: list[Waiting]) -> None:
        self.callers = callers
        self.remaining = len(callers)
        self.task: asyncio.Task[None] | None = None
        for caller in callers:
            caller.batch = self

    def leave(self) -> None:
        """Records that a caller no longer waits. The last one cancels the call."""
        self.remaining -= 1
        if self.remaining == 0 and self.task is not None:
            self.task.cancel()

    def fail(self, error: PolynymError) -> None:
        """Ends the wait of all callers."""
        for caller in self.callers:
            caller.fail(error.copy())


class Queue:
    """The look-ups with the same options."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.waiting: deque[Waiting] = deque()


class Batcher:
    """Resolves identifiers for callers of one event loop."""

    def __init__(self, calls: AsyncCalls) -> None:
        self._calls = calls
        self._queues: dict[LookUp, Queue] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._most = BATCH_ITEMS

    async def resolve(
        self, options: LookUp, identifier: v1.Identifier, timeout: float | None
    ) -> v1.ResolveIdentityResponse:
        """Returns the owner of an identifier, or raises the error of the look-up."""
        if not isinstance(identifier, v1.Identifier):
            raise TypeError(f"not an identifier: {type(identifier).__name__}")
        deadline = self._calls.rules.deadline(timeout)
        queue = self._queues.get(options)
        if queue is None:
            options.batch([])  # Raises if the options are malformed.
            queue = self._queues[options] = Queue()

        if queue.in_flight < IN_FLIGHT:
            queue.in_flight += 1
            try:
                return await self._resolve_alone(options, identifier, deadline)
            finally:
                self._has_returned(options, queue)
        given = await self._wait(queue, Waiting(identifier, deadline))
        if isinstance(given, PolynymError):
            return await self._after_error(given, options, identifier, deadline)
        return given

    async def _wait(self, queue: Queue, caller: Waiting) -> Answer:
        queue.waiting.append(caller)
        delay = caller.deadline - time.monotonic()
        timer = asyncio.get_running_loop().call_later(delay, caller.expire)
        try:
            return await caller.future
        finally:
            timer.cancel()
            caller.leave(queue)

    async def _resolve_alone(
        self, options: LookUp, identifier: v1.Identifier, deadline: float
    ) -> v1.ResolveIdentityResponse:
        rules = self._calls.rules
        return await self._calls.run(
            rules.call(RESOLVE_IDENTITY, options.single(identifier), deadline)
        )

    async def _after_error(
        self, error: PolynymError, options: LookUp, identifier: v1.Identifier, deadline: float
    ) -> v1.ResolveIdentityResponse:
        """Requests an item again that did not fit into a response. Raises other errors."""
        delay = backoff(error, 1) if is_retryable(error) else 0.0
        if error.code not in REPEATED or time.monotonic() + delay >= deadline:
            raise error
        await asyncio.sleep(delay)
        return await self._resolve_alone(options, identifier, deadline)

    def _has_returned(self, options: LookUp, queue: Queue) -> None:
        """Records that a call has returned, and sends the waiting look-ups."""
        queue.in_flight -= 1
        while queue.waiting and queue.in_flight < IN_FLIGHT:
            batch = Batch(self._take(queue))
            queue.in_flight += 1
            batch.task = self._spawn(self._send(options, queue, batch))
        if queue.in_flight == 0 and self._queues.get(options) is queue:
            del self._queues[options]

    def _take(self, queue: Queue) -> list[Waiting]:
        callers = [queue.waiting.popleft()]
        size = size_in_batch(callers[0].identifier)
        while queue.waiting and len(callers) < self._most:
            size += size_in_batch(queue.waiting[0].identifier)
            if size > BATCH_BYTES:
                break
            callers.append(queue.waiting.popleft())
        return callers

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _send(self, options: LookUp, queue: Queue, batch: Batch) -> None:
        try:
            answers = await self._answers(options, batch.callers)
        except PolynymError as error:
            batch.fail(error)
        except BaseException:
            batch.fail(make_error("CANCELLED", "the look-up was cancelled"))
            raise
        else:
            for caller, given in zip(batch.callers, answers, strict=True):
                caller.settle(given)
        finally:
            self._has_returned(options, queue)

    async def _answers(self, options: LookUp, callers: list[Waiting]) -> list[Answer]:
        deadline = max(caller.deadline for caller in callers)
        request = options.batch(caller.identifier for caller in callers)
        rules = self._calls.rules
        try:
            response = await self._calls.run(
                rules.call(BATCH_RESOLVE_IDENTITIES, request, deadline)
            )
        except PolynymError as error:
            limit = too_large_limit(error, len(callers))
            if limit is None:
                raise
            self._most = limit
            return [make_error("RESOURCE_EXHAUSTED", error.message)] * len(callers)
        return [answer(result) for result in response.results]
