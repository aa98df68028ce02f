"""Look-ups at the same time share calls, and nothing else."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from typing import Any, cast

import directory
import grpc
import pytest
from directory import in_loop
from google.rpc import error_details_pb2, status_pb2

from polynym import (
    AsyncClient,
    DeadlineExceeded,
    PermissionDenied,
    ResourceExhausted,
    _sharing,
    handle,
    v1,
)
from polynym._lookups import BATCH_BYTES
from polynym._sharing import IN_FLIGHT

Result = v1.BatchResolveIdentitiesResponse.Result


@pytest.fixture(autouse=True)
def no_call_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls hold up the others, however slow the machine is."""
    monkeypatch.setattr(_sharing, "STALLED_AFTER", 600)


def start(client: AsyncClient, count: int, prefix: str = "u", **options: Any) -> list[Any]:
    """Begins look-ups at the same time."""
    calls = (client.resolve(handle(f"{prefix}{n}"), **options) for n in range(count))
    return [asyncio.create_task(call) for call in calls]


def error(code: int, reason: str) -> status_pb2.Status:
    """Returns the status of an item."""
    status = status_pb2.Status(code=code, message="text")
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason=reason, domain="polynym"))
    return status


def names(answers: list[Any]) -> list[str]:
    """Returns the names of the users."""
    return [answer.user.display_name for answer in answers]


@in_loop
async def test_look_ups_that_wait_go_together() -> None:
    async with directory.serve() as (server, client):
        tasks = start(client, 1500)
        await server.wait_for(lambda: len(server.singles) == IN_FLIGHT)
        assert server.batches == []
        server.gate.set()
        assert names(await asyncio.gather(*tasks)) == [f"u{n}" for n in range(1500)]
        assert len(server.singles) == IN_FLIGHT
        assert [len(batch.identifiers) for batch in server.batches] == [1000, 500 - IN_FLIGHT]


@in_loop
async def test_a_batch_has_a_bound_in_bytes() -> None:
    async with directory.serve(timeout=30) as (server, client):
        server.gate.set()
        tasks = start(client, 40, prefix="x" * 50_000)
        assert len(await asyncio.gather(*tasks)) == 40
        assert all(batch.ByteSize() <= BATCH_BYTES for batch in server.batches)
        assert len(server.batches) >= 3


@in_loop
async def test_only_look_ups_with_equal_options_share_a_call() -> None:
    async with directory.serve() as (server, client):
        different: list[dict[str, Any]] = [
            {},
            {"tenant": "eu"},
            {"fields": ["user_id"]},
            {"fields": []},
            {"show_disabled": True},
            {"consistency": "eventual"},
            {"max_staleness": timedelta(seconds=1)},
        ]
        tasks = [task for options in different for task in start(client, 10, **options)]
        alone: list[dict[str, Any]] = [
            {"consistency": "linearizable"},
            {"as_of": datetime(2026, 1, 1, tzinfo=timezone.utc)},
        ]
        tasks += [task for options in alone for task in start(client, 10, **options)]
        expected = len(different) * IN_FLIGHT + len(alone) * 10
        await server.wait_for(lambda: len(server.singles) == expected)
        server.gate.set()
        await asyncio.gather(*tasks)
        assert len(server.singles) == expected
        assert [len(batch.identifiers) for batch in server.batches] == [10 - IN_FLIGHT] * 7
        options = {(b.tenant, b.show_disabled, b.consistency) for b in server.batches}
        assert {("eu", False, 0), ("", True, 0), ("", False, 3)} <= options


@in_loop
async def test_callers_that_leave_do_not_disturb_the_others() -> None:
    async with directory.serve() as (server, client):
        first = start(client, IN_FLIGHT)
        await server.wait_for(lambda: len(server.singles) == IN_FLIGHT)
        waiting = start(client, 10)
        hasty = start(client, 5, timeout=0.05)
        for task in hasty:
            with pytest.raises(DeadlineExceeded):
                await task
        waiting[0].cancel()
        server.gate.set()
        answers = await asyncio.gather(*first, *waiting, return_exceptions=True)
        assert isinstance(answers.pop(IN_FLIGHT), asyncio.CancelledError)
        assert len(names(answers)) == IN_FLIGHT + 9
        assert [len(batch.identifiers) for batch in server.batches] == [9]


@in_loop
async def test_a_batch_that_nobody_waits_for_is_cancelled() -> None:
    async with directory.serve() as (server, client):
        first = start(client, IN_FLIGHT)
        await server.wait_for(lambda: len(server.singles) == IN_FLIGHT)
        waiting = start(client, 10)
        await asyncio.sleep(0)
        first[0].cancel()
        await server.wait_for(lambda: len(server.batches) == 1)
        for task in waiting[1:]:
            task.cancel()
        await asyncio.wait(waiting[1:])
        assert server.cancelled == 1
        waiting[0].cancel()
        await server.wait_for(lambda: server.cancelled == 2)
        server.gate.set()
        assert await client.resolve(handle("joe"))


@in_loop
async def test_a_batch_has_the_latest_deadline_of_its_callers() -> None:
    async with directory.serve() as (server, client):
        first = start(client, IN_FLIGHT, timeout=20)
        await server.wait_for(lambda: len(server.singles) == IN_FLIGHT)
        hasty, patient = start(client, 5, timeout=0.2), start(client, 5, timeout=20)
        await asyncio.sleep(0)
        first[0].cancel()
        await server.wait_for(lambda: len(server.batches) == 1)
        outcomes = await asyncio.gather(*hasty, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {DeadlineExceeded}
        server.gate.set()
        assert len(await asyncio.gather(*patient)) == 5
        assert len(server.batches) == 1


@in_loop
async def test_items_without_room_are_asked_for_alone() -> None:
    async with directory.serve() as (server, client):

        def result(identifier: v1.Identifier) -> Result:
            if identifier.handle.startswith("large"):
                return Result(error=error(8, "ANSWER_TOO_LARGE"))
            if identifier.handle == "secret":
                return Result(error=error(7, "ROLE_DENIED"))
            return Result(found={"user": directory.echo(identifier)})

        server.result = result
        server.gate.set()
        tasks = start(client, 10) + start(client, 3, prefix="large")
        tasks.append(asyncio.create_task(client.resolve(handle("secret"))))
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(answers.pop(), PermissionDenied)
        assert names(answers) == [f"u{n}" for n in range(10)] + [f"large{n}" for n in range(3)]
        assert len(server.singles) == IN_FLIGHT + 3


@in_loop
async def test_batching_can_be_turned_off() -> None:
    async with directory.serve(batching=False) as (server, client):
        server.gate.set()
        await asyncio.gather(*start(client, 20))
        assert len(server.singles) == 20
        assert server.batches == []


@in_loop
async def test_the_error_of_a_batch_is_that_of_each_caller() -> None:
    async with directory.serve() as (server, client):
        server.failure = grpc.StatusCode.RESOURCE_EXHAUSTED
        server.gate.set()
        answers = await asyncio.gather(*start(client, 10), return_exceptions=True)
        errors = answers[IN_FLIGHT:]
        assert {type(answer) for answer in errors} == {ResourceExhausted}
        assert len({id(answer) for answer in errors}) == len(errors)
        assert (len(server.singles), len(server.batches)) == (IN_FLIGHT, 1)


@in_loop
async def test_a_caller_with_a_wrong_type_does_not_disturb_the_others() -> None:
    async with directory.serve() as (server, client):
        good = start(client, 10)
        wrong: Any = "joe@example.com"
        for _ in range(2):
            with pytest.raises(TypeError, match="not an identifier: str"):
                await client.resolve(wrong)
            with pytest.raises(ValueError, match="CONSISTENCY_SOON"):
                await client.resolve(handle("joe"), consistency=cast(Any, "soon"))
        server.gate.set()
        assert len(await asyncio.gather(*good)) == 10
