"""A client whose server answers nothing on a connection any more."""

from __future__ import annotations

import asyncio
import socket

import directory
import pytest
from directory import in_loop

from polynym import AsyncClient, Client, DeadlineExceeded, Unavailable, _watch, handle, v1

JOE = v1.ResolveIdentityRequest(identifier=handle("joe"))
SHORT = 0.3


@in_loop
async def test_two_deadlines_in_a_row_open_a_new_connection_for_tasks() -> None:
    async with directory.serve() as (server, client):
        server.gate.set()
        await client.directory.ResolveIdentity(JOE)
        server.gate.clear()
        patient = asyncio.create_task(client.directory.ResolveIdentity(JOE, timeout=60))
        await server.wait_for(lambda: len(server.singles) == 2)
        for _ in range(2):
            assert len(set(server.peers)) == 1
            with pytest.raises(DeadlineExceeded):
                await client.directory.ResolveIdentity(JOE, timeout=SHORT)
        server.gate.set()
        await client.directory.ResolveIdentity(JOE, timeout=60)
        assert (await patient).user.display_name == "joe"
        assert len(set(server.peers)) == 2


@in_loop
async def test_two_deadlines_in_a_row_open_a_new_connection_for_threads() -> None:
    async with directory.serve() as (server, _):
        with Client(server.address) as client:

            async def resolve(timeout: float = 60) -> v1.ResolveIdentityResponse:
                call = client.directory.ResolveIdentity
                return await asyncio.to_thread(call, JOE, timeout=timeout)

            server.gate.set()
            await resolve()
            server.gate.clear()
            patient = asyncio.create_task(resolve())
            await server.wait_for(lambda: len(server.singles) == 2)
            for _ in range(2):
                assert len(set(server.peers)) == 1
                with pytest.raises(DeadlineExceeded):
                    await resolve(SHORT)
            server.gate.set()
            await resolve()
            assert (await patient).user.display_name == "joe"
            assert len(set(server.peers)) == 2


def tokens_of_two(address: str) -> list[str]:
    """Returns the tokens of the first two events of a watch."""
    with Client(address) as client, client.watch() as events:
        return [next(events).resume_token for _ in range(2)]


def test_a_silent_watch_goes_on_by_another_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    # The server answers pings: only the missing responses tell.
    monkeypatch.setattr(_watch, "LONGEST_SILENCE", 0.2)

    @in_loop
    async def watch() -> None:
        async with directory.serve() as (server, client):
            async with client.watch() as events:
                assert [(await anext(events)).resume_token for _ in range(2)] == ["1", "2"]
            assert await asyncio.to_thread(tokens_of_two, server.address) == ["3", "4"]
            assert len(set(server.peers)) == 4

    watch()


@in_loop
async def test_a_change_that_waits_for_a_connection_did_not_happen() -> None:
    create = v1.CreateUserRequest()
    # It accepts connections, and says nothing.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        async with AsyncClient(address, timeout=SHORT) as client:
            with pytest.raises(Unavailable) as task:
                await client.registry.CreateUser(create)
        with Client(address, timeout=SHORT) as threads, pytest.raises(Unavailable) as thread:
            await asyncio.to_thread(threads.registry.CreateUser, create)
    assert task.value.is_never_sent
    assert thread.value.is_never_sent


@in_loop
async def test_streams_wait_for_a_server_as_calls_do() -> None:
    export = v1.ExportUsersRequest()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        async with AsyncClient(address, timeout=SHORT) as client:
            for stream in (client.admin.ExportUsers(export), client.watch()):
                with pytest.raises(Unavailable) as raised:
                    await anext(stream)
                assert raised.value.is_never_sent
        with Client(address, timeout=SHORT) as threads:
            for events in (threads.admin.ExportUsers(export), threads.watch()):
                with pytest.raises(Unavailable) as raised:
                    await asyncio.to_thread(next, events)
                assert raised.value.is_never_sent
