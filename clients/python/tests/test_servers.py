"""Several servers take turns, and stand in for one another."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator

import directory
import pytest
from directory import in_loop

from polynym import AsyncClient, Client, Unavailable, handle, v1
from polynym._servers import AWAY, Server, Servers
from polynym._settings import Address
from polynym.testing import serve

JOE = v1.ResolveIdentityRequest(identifier=handle("joe"))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that a test sets."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def closed_port() -> Iterator[str]:
    """An address where nothing listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{unused.getsockname()[1]}"


def three() -> Servers:
    """Returns three servers."""
    return Servers([Address(name, 7171, is_tls=True) for name in "abc"])


def turns(servers: Servers, count: int, failed: Server | None = None) -> list[Server]:
    """Returns the servers of the next attempts."""
    return [servers.next(failed) for _ in range(count)]


def test_servers_take_turns() -> None:
    servers = three()
    assert set(turns(servers, 3)) == set(servers.all)
    first = turns(servers, 3)
    assert turns(servers, 3) == first
    # Another attempt goes to another server.
    assert servers.all[1] not in turns(servers, 9, failed=servers.all[1])


def test_a_server_that_is_away_is_tried_again_later(clock: list[float]) -> None:
    servers = three()
    away = servers.all[0]
    away.leave()
    assert away not in turns(servers, 9)
    assert servers.any_is_near
    clock[0] += AWAY + 1
    assert turns(servers, 9).count(away) == 1, "one call tries it"
    away.answered()
    assert turns(servers, 9).count(away) == 3
    for server in servers.all:
        server.leave()
    assert not servers.any_is_near
    assert turns(servers, 1)[0] in servers.all


@in_loop
async def test_calls_go_to_all_servers_that_can_be_reached() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        refusing = f"127.0.0.1:{unused.getsockname()[1]}"
        async with directory.serve() as (one, _), directory.serve() as (two, _):
            one.gate.set()
            two.gate.set()
            addresses = [refusing, one.address, two.address]
            async with AsyncClient(addresses, batching=False, timeout=60) as client:
                for _ in range(12):
                    await client.resolve(handle("joe"))
            with Client(",".join(addresses), batching=False, timeout=60) as threads:
                for _ in range(12):
                    await asyncio.to_thread(threads.resolve, handle("joe"))
            assert len(one.singles) >= 8
            assert len(two.singles) >= 8
            assert len(one.singles) + len(two.singles) == 24


@in_loop
async def test_the_retry_of_a_lost_attempt_goes_to_another_server() -> None:
    async with directory.serve() as (one, _), directory.serve() as (two, _):
        one.gate.set()
        two.gate.set()
        for server in (one, two):
            server.failing = 1
        async with AsyncClient([one.address, two.address], timeout=60) as client:
            await asyncio.gather(*(client.directory.ResolveIdentity(JOE) for _ in range(2)))
        assert len(one.singles) == len(two.singles) == 2


def test_connecting_at_once(closed_port: str) -> None:
    with Client(closed_port, timeout=0.3) as client, pytest.raises(Unavailable) as raised:
        client.connect()
    assert raised.value.message == f"the server {closed_port} cannot be reached"

    async def main(address: str) -> None:
        with pytest.raises(Unavailable):
            await AsyncClient(closed_port, wait_for_ready=False).connect()
        async with AsyncClient([closed_port, address], timeout=60) as client:
            assert await client.connect() is client

    with serve() as server:
        asyncio.run(main(server.address))
        with Client(server.address, timeout=60).connect() as connected:
            assert list(connected.search(tenant="default")) == []


@in_loop
async def test_a_server_that_accepts_connections_in_silence_holds_up_no_calls() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        async with directory.serve() as (server, _):
            server.gate.set()
            async with AsyncClient([address, server.address], timeout=60) as client:
                for _ in range(6):
                    await client.resolve(handle("joe"))
            with Client([address, server.address], timeout=60) as threads:
                for _ in range(6):
                    await asyncio.to_thread(threads.resolve, handle("joe"))
        assert len(server.singles) == 12


@in_loop
async def test_streams_go_to_a_server_that_can_be_reached() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        refusing = f"127.0.0.1:{unused.getsockname()[1]}"
        async with directory.serve() as (server, _):
            async with AsyncClient([refusing, server.address], timeout=60) as client:
                for _ in range(3):
                    async with client.watch() as watch:
                        assert await anext(watch)
                    await anext(client.directory.Watch(v1.WatchRequest()))
            with Client([refusing, server.address], timeout=60) as threads:
                for _ in range(3):
                    call = threads.directory.Watch(v1.WatchRequest())
                    assert await asyncio.to_thread(next, call)
