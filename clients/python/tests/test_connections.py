"""A client whose server answers nothing on a connection any more."""

from __future__ import annotations

import asyncio

import directory
import pytest
from directory import in_loop

from polynym import Client, DeadlineExceeded, handle, v1

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
