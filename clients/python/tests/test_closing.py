"""A client that is closed while its calls are open."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

import directory
import pytest
from directory import in_loop

from polynym import Client, OutcomeUnknown, Unavailable, handle, v1


async def catch(call: Coroutine[Any, Any, Any]) -> BaseException:
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
        assert type(await read) is (Unavailable if is_known else asyncio.CancelledError)
        assert type(await mutation) is (OutcomeUnknown if is_known else asyncio.CancelledError)


@in_loop
async def test_threads() -> None:
    async with directory.serve() as (server, _):
        client = Client(server.address)
        read = asyncio.create_task(catch(asyncio.to_thread(client.resolve, handle("joe"))))
        create = asyncio.to_thread(client.registry.CreateUser, v1.CreateUserRequest())
        mutation = asyncio.create_task(catch(create))
        await server.wait_for(lambda: len(server.singles) == len(server.created) == 1)
        client.close()
        assert type(await read) is Unavailable
        assert type(await mutation) is OutcomeUnknown
        assert (len(server.singles), len(server.created)) == (1, 1)
