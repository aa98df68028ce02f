"""A client that is closed while its calls are open."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import directory
import grpc
import pytest
from directory import in_loop

from polynym import AsyncClient, Client, Closed, OutcomeUnknown, handle, v1


async def catch(call: Awaitable[Any]) -> BaseException:
    """Returns the error of a call."""
    with pytest.raises(BaseException) as raised:  # noqa: PT011
        await call
    return raised.value


@in_loop
async def test_tasks() -> None:
    async with directory.serve() as (server, client):
        read = asyncio.create_task(catch(client.resolve(handle("joe"))))
        create = client.registry.CreateUser(v1.CreateUserRequest())
        mutation = asyncio.create_task(catch(create))
        await server.wait_for(lambda: len(server.singles) == len(server.created) == 1)
        await client.close()
        # Python 3.10 does not say whether a task was cancelled by others.
        is_known = sys.version_info >= (3, 11)
        assert type(await read) is (Closed if is_known else asyncio.CancelledError)
        assert type(await mutation) is (OutcomeUnknown if is_known else asyncio.CancelledError)


@in_loop
async def test_threads() -> None:
    async with directory.serve() as (server, _):
        client = Client(server.address, timeout=60)
        read = asyncio.create_task(catch(asyncio.to_thread(client.resolve, handle("joe"))))
        create = asyncio.to_thread(client.registry.CreateUser, v1.CreateUserRequest())
        mutation = asyncio.create_task(catch(create))
        await server.wait_for(lambda: len(server.singles) == len(server.created) == 1)
        client.close()
        assert type(await read) is Closed
        assert type(await mutation) is OutcomeUnknown
        assert (len(server.singles), len(server.created)) == (1, 1)


ENTRANCES: list[Callable[[Client], Any]] = [
    lambda client: client.resolve(handle("joe")),
    lambda client: client.resolve(handle("joe"), consistency="linearizable"),
    lambda client: client.connect(),
    lambda client: client.get_user("joe"),
    lambda client: client.get_or_create(handle("joe")),
    lambda client: list(client.search()),
    lambda client: next(client.watch()),
    lambda client: list(client.admin.ExportUsers(v1.ExportUsersRequest())),
    lambda client: list(client.admin.ImportUsers([])),
]


@pytest.mark.parametrize("enter", ENTRANCES)
def test_a_call_of_a_closed_client_is_one_error(enter: Callable[[Client], Any]) -> None:
    client = Client("127.0.0.1:1")
    client.close()
    with pytest.raises(Closed, match="the client is closed") as raised:
        enter(client)
    assert raised.value.code == "CANCELLED"
    assert type(client.resolve_many([handle("joe")])[0]) is Closed


@in_loop
async def test_a_closed_client_of_tasks() -> None:
    client = AsyncClient("127.0.0.1:1")
    await client.close()
    calls: list[Any] = [client.resolve(handle("joe")), client.connect(), anext(client.watch())]
    calls += [anext(client.search()), anext(client.admin.ExportUsers(v1.ExportUsersRequest()))]
    for call in calls:
        assert type(await catch(call)) is Closed


@in_loop
async def test_open_watches_end_with_their_client() -> None:
    async with directory.serve() as (_, client), client.watch() as watch:
        await anext(watch)
        rest = asyncio.create_task(catch(anext(watch)))
        await asyncio.sleep(0)
        await client.close()
        is_known = sys.version_info >= (3, 11)
        assert type(await rest) is (Closed if is_known else asyncio.CancelledError)


@in_loop
async def test_a_change_that_is_closed_between_two_attempts() -> None:
    async with directory.serve(first_wait=60, longest_wait=60) as (server, client):
        server.failure = grpc.StatusCode.UNAVAILABLE
        server.gate.set()
        threads = Client(server.address, timeout=60)
        calls = [
            asyncio.create_task(catch(client.registry.CreateUser(v1.CreateUserRequest()))),
            asyncio.create_task(
                catch(asyncio.to_thread(threads.registry.CreateUser, v1.CreateUserRequest()))
            ),
        ]
        await server.wait_for(lambda: len(server.created) >= 2)
        threads.close()
        await client.close()
        for call in calls:
            error = await call
            assert isinstance(error, OutcomeUnknown)
            assert error.request_id


@in_loop
async def test_a_change_that_is_cancelled_names_its_request() -> None:
    async with directory.serve() as (server, client):
        call = client.registry.CreateUser(v1.CreateUserRequest())
        task = asyncio.create_task(catch(call))
        await server.wait_for(lambda: len(server.created) == 1)
        task.cancel()
        error = await task
        assert isinstance(error, asyncio.CancelledError)
        assert isinstance(error.__cause__, OutcomeUnknown)
        assert error.__cause__.request_id == server.created[0].request_id


@in_loop
async def test_a_change_whose_client_is_closed_when_it_is_sent_again() -> None:
    async with directory.serve() as (server, _):
        server.failure = grpc.StatusCode.UNAVAILABLE
        server.gate.set()
        client = Client(server.address, timeout=60)

        def token() -> None:
            if server.created:
                client.close()

        client._calls.rules.token = token
        create = asyncio.to_thread(client.registry.CreateUser, v1.CreateUserRequest())
        error = await catch(create)
        assert type(error) is OutcomeUnknown
        assert error.request_id == server.created[0].request_id
