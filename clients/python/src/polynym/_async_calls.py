"""Calls of methods in an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import grpc
import grpc.aio

from polynym._methods import Metadata, Method, Request, Response
from polynym._rules import Patience, Result, Rules, Send, Sleep, Steps
from polynym._servers import FORKS, Connection, Server
from polynym._settings import ChannelOptions, Settings, channel_options
from polynym.errors import PolynymError, closed

CONNECTING = (grpc.ChannelConnectivity.IDLE, grpc.ChannelConnectivity.CONNECTING)


class AsyncCalls:
    """Connections to servers, and the calls on them."""

    def __init__(
        self,
        settings: Settings,
        rules: Rules,
        interceptors: Sequence[Any],
        options: ChannelOptions,
    ) -> None:
        self.rules = rules
        is_tls = rules.servers.all[0].address.is_tls
        self._certificates = settings.certificates() if is_tls else None
        self._interceptors = list(interceptors)
        self._options = options
        self._closed = asyncio.Event()
        self._connection_of: WeakKeyDictionary[Any, Connection] = WeakKeyDictionary()

    def _connection(self, server: Server) -> Connection:
        """Returns the connection to a server. It belongs to the event loop of the first call."""
        if server.connection is None:
            self.rules.check()
            server.connection = self._connect(server)
        return server.connection

    def _connect(self, server: Server) -> Connection:
        FORKS.use("asyncio")
        target, has_others = server.address.target, len(self.rules.servers.all) > 1
        options = channel_options(server.address, self._options, has_others=has_others)
        if self._certificates is None:
            channel = grpc.aio.insecure_channel(target, options, interceptors=self._interceptors)
        else:
            credentials = grpc.ssl_channel_credentials(**self._certificates)
            channel = grpc.aio.secure_channel(
                target, credentials, options, interceptors=self._interceptors
            )
        return Connection(channel, lambda: channel.get_state(try_to_connect=True) in CONNECTING)

    async def close(self) -> None:
        """Closes the connections."""
        self.rules.is_closed = True
        self._closed.set()
        connections = [server.connection for server in self.rules.servers.all]
        opened = {*self._connection_of.values(), *connections} - {None}
        for connection in opened:
            if connection is not None:
                await connection.channel.close()

    async def unary(
        self,
        method: Method[Request, Response],
        request: Request,
        timeout: float | None = None,
        metadata: Metadata = (),
    ) -> Response:
        """Calls a method with one response, by the client's rules."""
        deadline = self.rules.deadline(timeout)
        return await self.run(self.rules.call(method, request, deadline, metadata))

    async def unary_stream(
        self,
        method: Method[Request, Response],
        request: Request,
        timeout: float | None = None,
        metadata: Metadata = (),
    ) -> AsyncIterator[Response]:
        """Calls a method with several responses. Nothing is retried that a server may have seen."""
        prepared = method.prepare(request, self.rules.tenant)
        patience = Patience(self.rules, self.rules.deadline(timeout))
        delay: float | None = 0.0
        while delay is not None:
            await self.sleep(delay)
            stream = AsyncStream(self, "unary_stream", method, prepared, timeout, metadata)
            try:
                async for response in stream.responses():
                    yield response
                return
            except PolynymError as error:
                delay = patience.delay() if error.is_never_sent else None
                if delay is None:
                    raise

    async def stream_stream(
        self,
        method: Method[Request, Response],
        requests: Iterable[Request] | AsyncIterable[Request],
        timeout: float | None = None,
        metadata: Metadata = (),
    ) -> AsyncIterator[Response]:
        """Calls a method with several requests and responses. Nothing is retried."""
        stream = AsyncStream(self, "stream_stream", method, requests, timeout, metadata)
        async for response in stream.responses():
            yield response

    async def run(self, steps: Steps[Result]) -> Result:
        """Performs the steps of a call, and returns its result."""
        try:
            step = next(steps)
            while True:
                try:
                    response = await self._perform(step)
                except (grpc.RpcError, PolynymError, asyncio.CancelledError) as fault:
                    step = steps.throw(fault)
                else:
                    step = steps.send(response)
        except StopIteration as end:
            result: Result = end.value
            return result

    async def _perform(self, step: Send | Sleep) -> Any:
        if isinstance(step, Sleep):
            return await self.sleep(step.seconds)
        end = time.monotonic() + step.timeout
        await self.wait_for(step.server, end)
        options = {"timeout": max(end - time.monotonic(), 0), "metadata": step.metadata}
        call = self.open(step.server, "unary_unary", step.method, step.request, **options)
        try:
            return await call
        except grpc.aio.UsageError:
            # An interceptor may begin the call when its channel is closed already.
            self.rules.check()
            raise
        except asyncio.CancelledError:
            if self.rules.is_closed and not is_cancelled():
                raise closed_fault() from None
            raise

    async def wait_for(self, server: Server, end: float) -> None:
        """Waits for the connection to a server."""
        for seconds in self._connection(server).looks(end, self.rules.servers):
            await self.sleep(seconds)
            self.rules.check()

    async def sleep(self, seconds: float) -> None:
        """Waits, but not longer than until the client is closed."""
        if seconds:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._closed.wait(), seconds)

    def open(
        self, server: Server, kind: str, method: Method[Any, Any], request: Any, **options: Any
    ) -> Any:
        """Begins a call. Returns the call of gRPC."""
        connection = self._connection(server)
        call = connection.caller(kind, method)(request, **options)
        # A channel ends when nobody has it.
        self._connection_of[call] = connection
        return call


class AsyncStream:
    """A call with several responses."""

    def __init__(
        self,
        calls: AsyncCalls,
        kind: str,
        method: Method[Any, Any],
        request: Any,
        timeout: float | None,
        metadata: Metadata,
    ) -> None:
        self._calls = calls
        self._rules = calls.rules
        self._rules.check()
        self._kind = kind
        self._method = method
        self._request = request
        self._timeout = timeout
        self._metadata = calls.rules.headers(metadata)
        self._began = time.monotonic()
        self._server = calls.rules.servers.next()
        self._call: Any = None

    async def begin(self) -> AsyncIterator[Any]:
        """Returns the responses, with errors of gRPC, when there is a connection."""
        await self._calls.wait_for(self._server, self._rules.deadline(self._timeout))
        options = {"timeout": self._timeout, "metadata": self._metadata}
        self._call = self._calls.open(
            self._server, self._kind, self._method, self._request, **options
        )
        responses: AsyncIterator[Any] = aiter(self._call)
        return responses

    async def responses(self) -> AsyncIterator[Any]:
        """Yields the responses, with errors of this package."""
        error: PolynymError | None = None
        try:
            async for response in await self.begin():
                yield response
        except (grpc.RpcError, PolynymError) as fault:
            error = self._rules.error_of(fault)
            raise error from fault
        except asyncio.CancelledError:
            if self._rules.is_closed and not is_cancelled():
                raise closed() from None
            raise
        finally:
            self.end(error)

    def end(self, error: PolynymError | None) -> None:
        """Notes the end of the stream, by an error or without one."""
        if error is not None and error.is_never_sent:
            self._server.leave()
        self._rules.observe(self._server, self._method, self._began, error)
        self.cancel()

    def cancel(self) -> None:
        """Cancels the call."""
        if self._call is not None:
            self._call.cancel()

    def replace_connection(self) -> None:
        """Lets the next call have a new connection."""
        self._server.replace_connection()


def is_cancelled(*, unless_known: bool = True) -> bool:
    """Returns whether the current task is being cancelled. Python 3.10 does not say."""
    return getattr(asyncio.current_task(), "cancelling", lambda: unless_known)() > 0


def closed_fault() -> grpc.aio.AioRpcError:
    """Returns the failure of an attempt whose client was closed."""
    nothing = grpc.aio.Metadata()
    code, text = grpc.StatusCode.CANCELLED, "the client is closed"
    return grpc.aio.AioRpcError(code, nothing, nothing, details=text)
