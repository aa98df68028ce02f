"""Calls of methods in threads."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import grpc

from polynym._methods import Metadata, Method, Request, Response
from polynym._rules import Result, Rules, Send, Sleep, Steps
from polynym._settings import ChannelOptions, Settings, channel_options
from polynym.errors import from_rpc_error


class Calls:
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
        self._interceptors = interceptors
        self._channels: WeakSet[grpc.Channel] = WeakSet()
        self._channel_of: WeakKeyDictionary[Any, grpc.Channel] = WeakKeyDictionary()
        self._open_channel()
        rules.reconnect = self._open_channel

    def _open_channel(self) -> None:
        """Opens a channel. The former one, if any, lives as long as its calls."""
        target = self._address.target
        if self._credentials is None:
            self._channel = grpc.insecure_channel(target, self._options)
        else:
            self._channel = grpc.secure_channel(target, self._credentials, self._options)
        self._channels.add(self._channel)
        self._intercepted = grpc.intercept_channel(self._channel, *self._interceptors)
        self._multi_callables: dict[str, Any] = {}

    def close(self) -> None:
        """Closes the connection."""
        self.rules.is_closed = True
        for channel in list(self._channels):
            channel.close()

    def unary(
        self,
        method: Method[Request, Response],
        request: Request,
        timeout: float | None = None,
        metadata: Metadata = (),
    ) -> Response:
        """Calls a method with one response, by the client's rules."""
        deadline = self.rules.deadline(timeout)
        return self.run(self.rules.call(method, request, deadline, metadata))

    def unary_stream(
        self,
        method: Method[Request, Response],
        request: Request,
        timeout: float | None = None,
        metadata: Metadata = (),
    ) -> Iterator[Response]:
        """Calls a method with several responses. Nothing is retried."""
        with typed_errors():
            call = self.open_stream(method, request, timeout, metadata)
            try:
                yield from call
            finally:
                cancel(call)

    def stream_stream(
        self,
        method: Method[Request, Response],
        requests: Iterable[Request],
        timeout: float | None = None,
        metadata: Metadata = (),
    ) -> Iterator[Response]:
        """Calls a method with several requests and responses. Nothing is retried."""
        headers = self.rules.headers(metadata)
        with typed_errors():
            multi = self._multi_callable("stream_stream", method)
            call = multi(iter(requests), timeout=timeout, metadata=headers)
            self._channel_of[call] = self._channel
            try:
                yield from call
            finally:
                cancel(call)

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
        call = multi(prepared, timeout=timeout, metadata=self.rules.headers(metadata))
        self._channel_of[call] = self._channel
        return call

    def run(self, steps: Steps[Result]) -> Result:
        """Performs the steps of a call, and returns its result."""
        try:
            step = next(steps)
            while True:
                if isinstance(step, Sleep):
                    time.sleep(step.seconds)
                    step = next(steps)
                    continue
                try:
                    response = self._send(step)
                except grpc.RpcError as fault:
                    step = steps.throw(fault)
                else:
                    step = steps.send(response)
        except StopIteration as end:
            result: Result = end.value
            return result

    def _send(self, step: Send) -> Any:
        channel = self._channel  # It lives as long as the call, so that `close` finds it.
        multi = self._multi_callable("unary_unary", step.method)
        response = multi(step.request, timeout=step.timeout, metadata=step.metadata)
        del channel
        return response

    def _multi_callable(self, kind: str, method: Method[Any, Any]) -> Any:
        # In this order: another thread may open a channel.
        callables = self._multi_callables
        multi = callables.get(method.path)
        if multi is None:
            multi = getattr(self._intercepted, kind)(
                method.path,
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            )
            callables[method.path] = multi
        return multi


@contextmanager
def typed_errors() -> Iterator[None]:
    """Raises the errors of gRPC as those of this package."""
    try:
        yield
    except grpc.RpcError as fault:
        raise from_rpc_error(fault) from fault


def cancel(call: Any) -> None:
    """Cancels a stream.

    An interceptor, such as that of OpenTelemetry, may make it a generator, which cannot be closed
    while another thread reads it: that thread gets one more response.
    """
    if hasattr(call, "cancel"):
        call.cancel()
    else:
        with suppress(ValueError):
            call.close()
