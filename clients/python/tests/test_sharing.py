"""What becomes of look-ups whose shared call fails, or takes long: for tasks and for threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import directory
import grpc
import pytest
from directory import Directory, in_loop
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2
from scripted import Fault, perform

from polynym import (
    Client,
    DeadlineExceeded,
    PermissionDenied,
    ResourceExhausted,
    _sharing,
    handle,
    v1,
)
from polynym._lookups import LookUp
from polynym._rules import Rules
from polynym._servers import Connection
from polynym._sharing import ALONE, IN_FLIGHT, MOST_STALLED, Again, Queue, go_alone, share
from polynym._thread_batching import Batch, ThreadBatcher, Waiting

Result = v1.BatchResolveIdentitiesResponse.Result
Resolve = Callable[..., Awaitable[v1.ResolveIdentityResponse]]
Serve = Callable[..., Any]
CALLERS = 40


@asynccontextmanager
async def for_tasks(**options: Any) -> AsyncIterator[tuple[Directory, Resolve]]:
    """Runs a server, with a client for tasks."""
    async with directory.serve(**options) as (server, client):
        server.waiting = lambda: count_waiting(client._batcher)
        yield server, client.resolve


@asynccontextmanager
async def for_threads(**options: Any) -> AsyncIterator[tuple[Directory, Resolve]]:
    """Runs a server, with a client for threads."""
    async with directory.serve() as (server, _):
        with Client(server.address, **options) as client, ThreadPoolExecutor(300) as threads:

            async def resolve(*arguments: Any, **keywords: Any) -> v1.ResolveIdentityResponse:
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(
                    threads, lambda: client.resolve(*arguments, **keywords)
                )

            server.waiting = lambda: count_waiting(client._batcher)
            yield server, resolve


def count_waiting(batcher: Any) -> int:
    """Returns how many look-ups wait for others."""
    return sum(len(queue.waiting) for queue in list(batcher._queues.values()))


@pytest.fixture(autouse=True)
def no_call_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls hold up the others, however slow the machine is."""
    monkeypatch.setattr(_sharing, "STALLED_AFTER", 600)


both = pytest.mark.parametrize("serve", [for_tasks, for_threads])


def start(resolve: Resolve, count: int, **options: Any) -> list[asyncio.Task[Any]]:
    """Begins look-ups at the same time."""
    names = [f"u{n}" for n in range(count)]
    return [asyncio.ensure_future(resolve(handle(name), **options)) for name in names]


async def outcomes(calls: list[asyncio.Task[Any]]) -> list[Any]:
    """Returns the names of the users, or errors."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    return [a if isinstance(a, BaseException) else a.user.display_name for a in answers]


def error(code: int, reason: str, delay: float | None = None) -> Result:
    """Returns an item with an error."""
    status = status_pb2.Status(code=code, message="text")
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason=reason, domain="polynym"))
    if delay is not None:
        wait = Duration()
        wait.FromMilliseconds(int(delay * 1000))
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=wait))
    return Result(error=status)


@both
def test_look_ups_share_calls(serve: Serve) -> None:
    @in_loop
    async def test() -> None:
        async with serve(timeout=60) as (server, resolve):
            calls = start(resolve, CALLERS)
            await server.wait_for_queue(CALLERS - IN_FLIGHT)
            server.gate.set()
            assert await outcomes(calls) == [f"u{n}" for n in range(CALLERS)]
            assert (len(server.singles), len(server.batches)) == (IN_FLIGHT, 1)

    test()


@both
def test_a_slow_call_holds_up_no_others(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sharing, "STALLED_AFTER", 0.1)

    @in_loop
    async def test() -> None:
        async with serve(timeout=600) as (server, resolve):
            calls = start(resolve, IN_FLIGHT)
            await server.wait_for(lambda: len(server.singles) == IN_FLIGHT)
            # Each call that takes long makes room for another, up to a bound.
            for n in range(1, MOST_STALLED + 1):
                calls.append(asyncio.ensure_future(resolve(handle(f"v{n}"))))
                await server.wait_for(lambda n=n: server.calls == IN_FLIGHT + n)
            calls.append(asyncio.ensure_future(resolve(handle("last"))))
            server.gate.set()
            assert len(await outcomes(calls)) == IN_FLIGHT + MOST_STALLED + 1

    test()


@both
def test_the_look_ups_of_a_call_that_failed_go_alone(serve: Serve) -> None:
    @in_loop
    async def test() -> None:
        async with serve(timeout=600) as (server, resolve):
            server.failure = grpc.StatusCode.UNAVAILABLE
            calls = start(resolve, CALLERS)
            await server.wait_for_queue(CALLERS - IN_FLIGHT)
            server.gate.set()
            assert await outcomes(calls) == [f"u{n}" for n in range(CALLERS)]
            alone = CALLERS - sum(len(batch.identifiers) for batch in server.batches)
            assert len(server.singles) == CALLERS
            assert len(server.batches) >= 1
            assert alone >= IN_FLIGHT
            assert server.most_at_once <= ALONE + IN_FLIGHT

    test()


@both
def test_whoever_has_no_answer_at_half_of_its_time_goes_alone(serve: Serve) -> None:
    @in_loop
    async def test() -> None:
        async with serve(timeout=600) as (server, resolve):
            server.holds_batches = True
            calls = start(resolve, IN_FLIGHT)
            await server.wait_for(lambda: len(server.singles) == IN_FLIGHT)
            hasty = start(resolve, 5, timeout=6)
            await server.wait_for_queue(5)
            server.gate.set()
            assert await outcomes(calls + hasty) == ["u0", "u1", *(f"u{n}" for n in range(5))]

    test()


@both
def test_items_that_were_refused_go_alone_after_a_delay(serve: Serve) -> None:
    @in_loop
    async def test() -> None:
        async with serve(timeout=600) as (server, resolve):
            results = {
                "u7": error(8, "RATE_LIMITED", 0.05),
                "u8": error(14, "STORE_UNAVAILABLE"),
                "u9": error(8, "ANSWER_TOO_LARGE"),
            }
            server.refused["u10"] = grpc.StatusCode.PERMISSION_DENIED
            server.refused["u11"] = grpc.StatusCode.RESOURCE_EXHAUSTED
            found = server.result
            server.result = lambda name: results.get(name.handle) or found(name)
            calls = start(resolve, 12)
            await server.wait_for_queue(12 - IN_FLIGHT)
            server.gate.set()
            answers = await outcomes(calls)
            assert answers[:10] == [f"u{n}" for n in range(10)]
            assert isinstance(answers[10], PermissionDenied)
            assert isinstance(answers[11], ResourceExhausted)

    test()


@both
def test_the_limit_of_a_server_is_learned(serve: Serve) -> None:
    @in_loop
    async def test() -> None:
        async with serve(timeout=600) as (server, resolve):
            server.most_items = 10
            calls = start(resolve, CALLERS)
            await server.wait_for_queue(CALLERS - IN_FLIGHT)
            server.gate.set()
            assert await outcomes(calls) == [f"u{n}" for n in range(CALLERS)]
            server.batches.clear()
            assert await outcomes(start(resolve, CALLERS)) == [f"u{n}" for n in range(CALLERS)]
            assert all(len(batch.identifiers) <= 10 for batch in server.batches)

    test()


def flight_of(rules: Rules, *names: str) -> Any:
    """Returns the steps of the call of look-ups, which have ten minutes."""
    deadline = time.monotonic() + 600
    return share(rules, LookUp(), [Waiting(handle(name), deadline) for name in names])


def test_a_shared_call_that_all_have_left_is_no_attempt_and_no_silence() -> None:
    rules, late = Rules(), Fault("DEADLINE_EXCEEDED")
    server = rules.servers.all[0]
    server.answered()
    connection = server.connection = Connection(None, lambda: False)
    for _ in range(3):
        assert perform(flight_of(rules, "a", "b"), late)[0] == [None, None]
    assert server.connection is connection
    assert go_alone(rules, None, time.monotonic()) == Again(0, 0)


def test_a_look_up_that_has_a_call_for_itself_stays_until_its_deadline() -> None:
    for names, seconds in (("ab", 300), ("a", 600)):
        steps = flight_of(Rules(), *names)
        assert seconds - 60 < next(steps).timeout <= seconds
    steps = flight_of(Rules(), "a")
    (given,), _, _ = perform(steps, Fault("DEADLINE_EXCEEDED"))
    assert isinstance(given, DeadlineExceeded)
    with pytest.raises(DeadlineExceeded):
        go_alone(Rules(), given, time.monotonic() + 600)


def test_a_thread_that_is_interrupted_leaves_its_batch_to_the_others() -> None:
    with Client("127.0.0.1:1") as client:
        batcher, options, queue = ThreadBatcher(client._calls), LookUp(), Queue[Waiting]()
        deadline = time.monotonic() + 600
        callers = [Waiting(handle(f"u{n}"), deadline + n) for n in range(3)]
        flight = queue.begin()
        assert flight
        Batch(callers, flight)
        *others, carrier = callers
        batcher._abandon(options, queue, carrier)
        assert queue.is_idle
        for caller in others:
            assert caller.inbox.get_nowait() is None
            assert go_alone(client._calls.rules, None, deadline) == Again(0, 0)
