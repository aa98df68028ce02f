"""The client for asyncio, against a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

import polynym
from polynym import AsyncClient, NotFound, email, handle, v1
from polynym.testing import Server

Create = Callable[..., v1.User]
Body = Callable[[AsyncClient], Awaitable[None]]


@pytest.fixture
def run(polynym_server: Server, tenant: str) -> Callable[[Body], None]:
    """Runs a coroutine with a client of the tenant."""

    async def main(body: Body) -> None:
        async with AsyncClient(polynym_server.address, tenant=tenant, timeout=60) as client:
            await body(client)

    return lambda body: asyncio.run(main(body))


async def collect(items: AsyncIterator[Any]) -> list[Any]:
    """Returns all items."""
    return [item async for item in items]


def test_look_ups_at_the_same_time(run: Callable[[Body], None], create: Create) -> None:
    ids = [create(email(f"user{n}@example.com")).user_id for n in range(10)]

    async def body(client: AsyncClient) -> None:
        names = [email(f"user{n % 12}@example.com") for n in range(300)] + [email("no-address")]
        calls = (client.resolve(name, fields=["user_id"]) for name in names)
        answers = await asyncio.gather(*calls, return_exceptions=True)
        for n, answer in enumerate(answers[:-1]):
            if n % 12 < 10:
                assert isinstance(answer, v1.ResolveIdentityResponse)
                assert answer.user.user_id == ids[n % 12]
            else:
                assert isinstance(answer, NotFound)
        with pytest.raises(polynym.InvalidArgument) as single:
            await client.resolve(email("no-address"))
        batched = answers[-1]
        assert isinstance(batched, polynym.InvalidArgument)
        assert vars(batched) == vars(single.value)

    run(body)


def test_mutations_and_lists(run: Callable[[Body], None]) -> None:
    async def body(client: AsyncClient) -> None:
        created = []
        for n in range(5):
            user = v1.User(identities=[v1.Identity(identifier=handle(f"user{n}"))])
            response = await client.registry.CreateUser(v1.CreateUserRequest(user=user))
            created.append(response.user)
        found = await collect(client.search(page_size=2, order_by="create_time"))
        assert found == created
        assert await client.get_user(created[0].user_id) == created[0]
        events = await collect(client.history(handle("user3"), page_size=1))
        assert [event.method for event in events] == ["CreateUser"]
        answers = await client.resolve_many([handle("user0"), handle("nobody")])
        assert isinstance(answers[0], v1.ResolveIdentityResponse)
        assert isinstance(answers[1], NotFound)
        exported = await collect(client.admin.ExportUsers(v1.ExportUsersRequest()))
        assert sum(response.HasField("user") for response in exported) == 5

    run(body)


def test_a_stream_of_requests(run: Callable[[Body], None], create: Create) -> None:
    create(handle("joe"))

    async def body(client: AsyncClient) -> None:
        with pytest.raises(polynym.InvalidArgument):
            await collect(client.admin.ImportUsers([v1.ImportUsersRequest()]))

    run(body)


def test_a_watch(run: Callable[[Body], None], create: Create) -> None:
    joe = create(handle("joe"))

    async def body(client: AsyncClient) -> None:
        disable = v1.DisableUserRequest(user_id=joe.user_id)
        enable = v1.EnableUserRequest(user_id=joe.user_id)
        async with client.watch(user_ids=[joe.user_id]) as watch:
            await client.registry.DisableUser(disable)
            first = await anext(watch)
            await client.registry.EnableUser(enable)
            second = await anext(watch)
        assert [event.sequence for event, _ in (first, second)] == [2, 3]
        assert await collect(watch) == []

        resumed = client.watch(user_ids=[joe.user_id], resume_token=first.resume_token)
        assert (await anext(resumed)).event == second.event
        rest = asyncio.create_task(collect(resumed))
        await asyncio.sleep(0.05)
        resumed.close()
        assert await rest == []

        waiting = asyncio.create_task(collect(client.watch()))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with pytest.raises(polynym.InvalidArgument):
            await anext(client.watch(resume_token="nonsense"))

    run(body)
