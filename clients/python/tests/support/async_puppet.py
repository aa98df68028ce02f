"""Performs the steps of the scenarios with `polynym.AsyncClient`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable
from typing import Any

import steps
from google.protobuf.message import Message
from steps import Step, ok, parse

import polynym
from polynym import PolynymError, v1


class AsyncPuppet:
    """Takes one step after another."""

    def __init__(self) -> None:
        self.client: polynym.AsyncClient | None = None
        self.watch: polynym.AsyncWatch | None = None
        self.watched: asyncio.Queue[Step] = asyncio.Queue()
        self.follower: asyncio.Task[None] | None = None
        self.kept = steps.Kept()
        self.loops: list[asyncio.Task[None]] = []

    async def take(self, step: Step) -> Step:
        """Performs a step, and returns its answer."""
        return {"id": step["id"], **await getattr(self, f"on_{step['op']}")(step)}

    async def on_connect(self, step: Step) -> Step:
        """Replaces the client."""
        await self.close()
        self.client = polynym.AsyncClient(**steps.connection(step))
        return {}

    async def on_close(self, step: Step) -> Step:
        """Closes the client."""
        await self.close()
        return {}

    async def close(self) -> None:
        """Closes the client."""
        if self.watch is not None:
            self.watch.close()
        if self.follower is not None:
            await self.follower
        if self.client is not None:
            await self.client.close()

    async def on_call(self, step: Step) -> Step:
        """Calls any method."""
        method, request = steps.method_of(self.client, step)
        return await attempt(method(request, timeout=steps.seconds(step)))

    async def on_resolve(self, step: Step) -> Step:
        """Looks one identifier up."""
        return await self.resolve(step["request"], steps.seconds(step))

    async def resolve(self, text: str, timeout: float | None) -> Step:
        """Looks one identifier up."""
        assert self.client
        request = parse(v1.ResolveIdentityRequest, text)
        options = steps.options(request)
        return await attempt(self.client.resolve(request.identifier, **options, timeout=timeout))

    async def on_resolve_concurrently(self, step: Step) -> Step:
        """Looks identifiers up at the same time."""
        requests = step["requests"]
        timeouts = step.get("timeouts_ms") or [None] * len(requests)
        calls = map(self.resolve, requests, map(steps.to_seconds, timeouts))
        return {"results": await asyncio.gather(*calls)}

    async def on_keep_resolving(self, step: Step) -> Step:
        """Begins loops of look-ups."""
        self.kept = steps.Kept()
        kept = self.kept

        async def loop() -> None:
            while not kept.is_over:
                kept.count(await self.resolve(step["request"], None))

        self.loops = [asyncio.create_task(loop()) for _ in range(steps.LOOPS)]
        return {}

    async def on_kept(self, step: Step) -> Step:
        """Ends the loops."""
        self.kept.is_over = True
        await asyncio.gather(*self.loops)
        return self.kept.answer()

    async def on_get_or_create(self, step: Step) -> Step:
        """Gets or creates a user, in so many tasks at once."""
        assert self.client
        client = self.client
        user = parse(v1.CreateUserRequest, step["request"]).user
        identifier = user.identities[0].identifier

        async def get_or_create() -> Step:
            try:
                return steps.got(await client.get_or_create(identifier, user))
            except PolynymError as error:
                return steps.failed(error)

        count = step.get("concurrency") or 1
        return {"results": await asyncio.gather(*(get_or_create() for _ in range(count)))}

    async def on_resolve_many(self, step: Step) -> Step:
        """Looks many identifiers up."""
        assert self.client
        request = parse(v1.BatchResolveIdentitiesRequest, step["request"])
        answers = await self.client.resolve_many(request.identifiers, **steps.options(request))
        return {"results": [steps.found(answer) for answer in answers]}

    async def on_search(self, step: Step) -> Step:
        """Searches over all pages."""
        assert self.client
        request = parse(v1.SearchUsersRequest, step["request"])
        return await collect(self.client.search(**steps.search_options(request)))

    async def on_history(self, step: Step) -> Step:
        """Lists a history over all pages."""
        assert self.client
        request = parse(v1.ListHistoryRequest, step["request"])
        return await collect(self.client.history(**steps.history_options(request)))

    async def on_watch(self, step: Step) -> Step:
        """Begins a watch in a task."""
        assert self.client
        request = parse(v1.WatchRequest, step["request"])
        watch = self.client.watch(**steps.watch_options(request))
        try:
            await watch.__aenter__()
        except PolynymError as error:
            return steps.failed(error)
        self.watch, self.watched = watch, asyncio.Queue()
        self.follower = asyncio.create_task(follow(watch, self.watched))
        return {}

    async def on_watched(self, step: Step) -> Step:
        """Waits for the events of the watch, and ends it."""
        assert self.watch
        deadline = asyncio.get_running_loop().time() + step["timeout_ms"] / 1000
        results: list[Step] = []
        while len(results) < step["count"]:
            remaining = deadline - asyncio.get_running_loop().time()
            try:
                results.append(await asyncio.wait_for(self.watched.get(), remaining))
            except asyncio.TimeoutError:
                break
        while not self.watched.empty():
            results.append(self.watched.get_nowait())
        self.watch.close()
        return {"results": results}


async def attempt(call: Awaitable[Message]) -> Step:
    """Returns the answer of a call."""
    try:
        return ok(await call)
    except PolynymError as error:
        return steps.failed(error)


async def collect(messages: AsyncIterable[Message]) -> Step:
    """Returns the answer with all messages, and an error at the end if there is one."""
    results = []
    try:
        async for message in messages:
            results.append(ok(message))
    except PolynymError as error:
        results.append(steps.failed(error))
    return {"results": results}


async def follow(watch: polynym.AsyncWatch, watched: asyncio.Queue[Any]) -> None:
    """Queues the events of a watch."""
    try:
        async for event, _ in watch:
            watched.put_nowait(ok(event))
    except PolynymError as error:
        watched.put_nowait(steps.failed(error))
