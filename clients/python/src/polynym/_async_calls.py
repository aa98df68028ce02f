"""Calls of methods in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import grpc
import grpc.aio

from polynym._methods import Metadata, Method, Request, Response
from polynym._rules import Result, Rules, Send, Sleep, Steps
from polynym._settings import ChannelOptions, Settings, channel_options
from polynym.errors import from_rpc_error


class AsyncCalls:
    """A channel to a server, and the calls on it."""

    def __init__(
        self,
        settings: Settings,
        rules: Rules,
        interceptors: Sequence[Any],
        options: ChannelOptions,
    ) -> None:
        self.rules = rules
        self._address = settings.checked_address(rules.token())
        self._options = channel_options(self._address, options)
        self._credentials = settings.credentials() if self._address.is_tls else None
        self._interceptors = list(interceptors)
        self._channel: grpc.aio.Channel | None = None
        self._multi_callables: dict[str, Any] = {}
        self._channel_of: WeakKeyDictionary[Any, grpc.aio.Channel] = WeakKeyDictionary()
        rules.reconnect = self._leave_channel

    def _leave_channel(self) -> None:
        """Lets the next call open a channel. The former one lives as long as its calls."""
        self._channel = None
        self._multi_callables = {}

    def _open_channel(self) -> grpc.aio.Channel:
        """Returns the channel. It belongs to the event loop of the first call."""
        if self.rules.is_closed:
            raise ValueError("the client is closed")
        if self._channel is None:
            target, options = self._address.target, self._options
            if self._credentials is None:
                self._channel = grpc.aio.insecure_channel(
                    target, options, interceptors=self._interceptors
                )
            else:
                self._channel = grpc.aio.secure_channel(
                    target, self._credentials, options, interceptors=self._interceptors
                )
        return self._channel

    async def close(self) -> None:
        """Closes the connection."""
        self.rules.is_closed = True
        self._multi_callables.clear()
        channels = set(self._channel_of.values())
        if self._channel is not None:
            channels.add(self._channel)
        for channel in channels:
            await channel.close()

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
        """Calls a method with several responses. Nothing is retried."""
        call = self.open_stream(method, request, timeout, metadata)
        async for response in responses(call):
            yield response

    async def stream_stream(
        self,
        method: Method[Request, Response],
        requests: Iterable[Request] | AsyncIterable[Request],
        timeout: float | None = None,
        metadata: Metadata = (),
    ) -> AsyncIterator[Response]:
        """Calls a method with several requests and responses. Nothing is retried."""
        multi = self._multi_callable("stream_stream", method)
        call = self._kept(multi(requests, timeout=timeout, metadata=self.rules.headers(metadata)))
        async for response in responses(call):
            yield response

    def open_stream(
        self,
        method: Method[Request, Response],
        request: Request,
        timeout: float | None,
        metadata: Metadata,
    ) -> Any:
        """Begins a call with several responses. Returns the call of gRPC."""
        prepared = method.prepare(request, self.rules.tenant)
        multi = self._multi_callable("unary_stream", method)
        return self._kept(multi(prepared, timeout=timeout, metadata=self.rules.headers(metadata)))

    async def run(self, steps: Steps[Result]) -> Result:
        """Performs the steps of a call, and returns its result."""
        try:
            step = next(steps)
            while True:
                if isinstance(step, Sleep):
                    await asyncio.sleep(step.seconds)
                    step = next(steps)
                    continue
                try:
                    response = await self._send(step)
                except grpc.RpcError as fault:
                    step = steps.throw(fault)
                else:
                    step = steps.send(response)
        except StopIteration as end:
            result: Result = end.value
            return result

    async def _send(self, step: Send) -> Any:
        multi = self._multi_callable("unary_unary", step.method)
        call = self._kept(multi(step.request, timeout=step.timeout, metadata=step.metadata))
        try:
            return await call
        except asyncio.CancelledError:
            if self.rules.is_closed and not is_cancelled():
                raise closed_error() from None
            raise

    def _kept(self, call: Any) -> Any:
        """Keeps the channel of a call as long as the call: a channel ends when nobody has it."""
        self._channel_of[call] = self._open_channel()
        return call

    def _multi_callable(self, kind: str, method: Method[Any, Any]) -> Any:
        multi = self._multi_callables.get(method.path)
        if multi is None:
            multi = getattr(self._open_channel(), kind)(
                method.path,
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            )
            self._multi_callables[method.path] = multi
        return multi


async def responses(call: Any) -> AsyncIterator[Any]:
    """Yields the responses of a call, with errors of this package."""
    try:
        async for response in call:
            yield response
    except grpc.RpcError as fault:
        raise from_rpc_error(fault) from fault
    finally:
        call.cancel()


def is_cancelled() -> bool:
    """Returns whether the current task is being cancelled, or may be: Python 3.10 does not say."""
    return getattr(asyncio.current_task(), "cancelling", lambda: 1)() > 0


def closed_error() -> grpc.aio.AioRpcError:
    """Returns the error of a call whose client was closed."""
    nothing = grpc.aio.Metadata()
    code, text = grpc.StatusCode.CANCELLED, "the client was closed"
    return grpc.aio.AioRpcError(code, nothing, nothing, details=text)
