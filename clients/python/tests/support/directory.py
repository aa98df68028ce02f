"""A server whose answers a test decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any

import grpc
import grpc.aio
from google.rpc import error_details_pb2, status_pb2

from polynym import AsyncClient, v1
from polynym._methods import Method
from polynym.v1.stubs import BATCH_RESOLVE_IDENTITIES, CREATE_USER, RESOLVE_IDENTITY, WATCH

Single = v1.ResolveIdentityRequest
Batch = v1.BatchResolveIdentitiesRequest
Test = Callable[[], Coroutine[Any, Any, None]]


def echo(identifier: v1.Identifier) -> v1.User:
    """Returns a user with the identifier as its name."""
    return v1.User(display_name=identifier.handle)


def in_loop(test: Test) -> Callable[[], None]:
    """Runs a test in an event loop."""

    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


async def refuse(context: Any, limit: int) -> None:
    """Refuses a batch that has too many items."""
    status = status_pb2.Status(code=3, message="text")
    info = {"reason": "BATCH_TOO_LARGE", "domain": "polynym", "metadata": {"limit": str(limit)}}
    status.details.add().Pack(error_details_pb2.ErrorInfo(**info))
    packed = ("grpc-status-details-bin", status.SerializeToString())
    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "text", (packed,))


class Directory(grpc.GenericRpcHandler):
    """Records look-ups. Each waits until the test lets it go."""

    def __init__(self) -> None:
        self.singles: list[Single] = []
        self.peers: list[str] = []
        self.created: list[v1.CreateUserRequest] = []
        self.batches: list[Batch] = []
        self.headers: dict[str, str | bytes] = {}
        self.cancelled = 0
        self.waiting: Callable[[], int] = lambda: 0
        self.open = 0
        self.most_at_once = 0
        self.most_items = 1000
        self.holds_batches = False
        self.failing = 0
        """How many further look-ups are lost."""
        self.refused: dict[str, grpc.StatusCode] = {}
        self.failure: grpc.StatusCode | None = None
        self.address = ""
        self.gate = asyncio.Event()
        self.arrived = asyncio.Condition()
        self.result: Callable[[v1.Identifier], Any] = lambda identifier: (
            v1.BatchResolveIdentitiesResponse.Result(found={"user": echo(identifier)})
        )

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        """Waits until the calls that have arrived meet a condition."""
        async with self.arrived:
            await asyncio.wait_for(self.arrived.wait_for(condition), 60)

    @property
    def calls(self) -> int:
        """How many look-ups have arrived, single ones and batches."""
        return len(self.singles) + len(self.batches)

    async def wait_for_queue(self, count: int) -> None:
        """Waits until the first calls have arrived, and so many look-ups wait for them."""
        await self.wait_for(lambda: self.calls > 0)
        while self.waiting() < count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async def record(self, calls: list[Any], request: Any) -> None:
        """Records a call, and waits until it may be answered."""
        async with self.arrived:
            calls.append(request)
            self.arrived.notify_all()
        self.open += 1
        self.most_at_once = max(self.most_at_once, self.open)
        try:
            await self.gate.wait()
            if self.holds_batches and calls is self.batches:
                await asyncio.sleep(600)
        except asyncio.CancelledError:
            self.cancelled += 1
            async with self.arrived:
                self.arrived.notify_all()
            raise
        finally:
            self.open -= 1

    async def single(self, request: Single, context: Any) -> v1.ResolveIdentityResponse:
        """Answers a look-up."""
        self.peers.append(context.peer())
        await self.record(self.singles, request)
        if self.failing:
            self.failing -= 1
            await context.abort(grpc.StatusCode.UNAVAILABLE, "text")
        code = self.refused.get(request.identifier.handle)
        if code is not None:
            await context.abort(code, "text")
        return v1.ResolveIdentityResponse(user=echo(request.identifier))

    async def batch(self, request: Batch, context: Any) -> v1.BatchResolveIdentitiesResponse:
        """Answers several look-ups."""
        await self.record(self.batches, request)
        if self.failure is not None:
            await context.abort(self.failure, "text")
        if len(request.identifiers) > self.most_items:
            await refuse(context, self.most_items)
        results = [self.result_of(identifier) for identifier in request.identifiers]
        return v1.BatchResolveIdentitiesResponse(results=results)

    def result_of(self, identifier: v1.Identifier) -> Any:
        """Returns an item of a batch."""
        code = self.refused.get(identifier.handle)
        if code is None:
            return self.result(identifier)
        status = status_pb2.Status(code=code.value[0], message="text")
        return v1.BatchResolveIdentitiesResponse.Result(error=status)

    async def mutation(self, request: v1.CreateUserRequest, context: Any) -> Any:
        """Never answers a mutation before the gate opens."""
        await self.record(self.created, request)
        if self.failure is not None:
            await context.abort(self.failure, "text")

    async def watch(
        self, request: v1.WatchRequest, context: Any
    ) -> AsyncIterator[v1.WatchResponse]:
        """Sends the number of the watch as an event, and is silent then."""
        self.peers.append(context.peer())
        number = str(len(self.peers))
        yield v1.WatchResponse(event=v1.Event(event_id=number), resume_token=number)
        await asyncio.sleep(600)

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        """Returns what answers a call."""
        if details.method == WATCH.path:
            return grpc.unary_stream_rpc_method_handler(
                self.watch, WATCH.request.FromString, WATCH.response.SerializeToString
            )
        handlers: dict[str, tuple[Method[Any, Any], Callable[..., Awaitable[Any]]]] = {
            RESOLVE_IDENTITY.path: (RESOLVE_IDENTITY, self.single),
            BATCH_RESOLVE_IDENTITIES.path: (BATCH_RESOLVE_IDENTITIES, self.batch),
            CREATE_USER.path: (CREATE_USER, self.mutation),
        }
        self.headers = dict(details.invocation_metadata)
        method, handler = handlers[details.method]
        return grpc.unary_unary_rpc_method_handler(
            handler, method.request.FromString, method.response.SerializeToString
        )


@asynccontextmanager
async def serve(**options: Any) -> AsyncIterator[tuple[Directory, AsyncClient]]:
    """Runs such a server, with a client of it."""
    directory = Directory()
    server = grpc.aio.server(handlers=[directory])
    port = server.add_insecure_port("127.0.0.1:0")
    directory.address = f"127.0.0.1:{port}"
    await server.start()
    try:
        async with AsyncClient(directory.address, **{"timeout": 60, **options}) as client:
            yield directory, client
    finally:
        await server.stop(None)
