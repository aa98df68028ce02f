"""Calls of methods in threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import grpc

from polynym._methods import Metadata, Method, Request, Response
from polynym._rules import Patience, Result, Rules, Send, Sleep, Steps
from polynym._servers import FORKS, Connection, Server
from polynym._settings import ChannelOptions, Settings, channel_options
from polynym.errors import PolynymError, closed

CONNECTING = (
    grpc.ChannelConnectivity.IDLE.value[0],
    grpc.ChannelConnectivity.CONNECTING.value[0],
)


class Calls:
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
        self._interceptors = interceptors
        self._options = options
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._channels: WeakSet[grpc.Channel] = WeakSet()
        self._connection_of: WeakKeyDictionary[Any, Connection] = WeakKeyDictionary()

    def _connection(self, server: Server) -> Connection:
        """Returns the connection to a server, which the first call opens."""
        connection = server.connection
        if connection is not None:
            return connection
        with self._lock:
            self.rules.check()
            if server.connection is None:
                server.connection = self._connect(server)
            return server.connection

    def _connect(self, server: Server) -> Connection:
        FORKS.use("threads")
        target, has_others = server.address.target, len(self.rules.servers.all) > 1
        options = channel_options(server.address, self._options, has_others=has_others)
        if self._certificates is None:
            channel = grpc.insecure_channel(target, options)
        else:
            credentials = grpc.ssl_channel_credentials(**self._certificates)
            channel = grpc.secure_channel(target, credentials, options)
        self._channels.add(channel)
        intercepted = grpc.intercept_channel(channel, *self._interceptors)
        core = core_of(channel)
        return Connection(channel, lambda: is_connecting(core), intercepted)

    def close(self) -> None:
        """Closes the connections."""
        with self._lock:
            self.rules.is_closed = True
            channels = list(self._channels)
        self._closed.set()
        for channel in channels:
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
        """Calls a method with several responses. Nothing is retried that a server may have seen."""
        prepared = method.prepare(request, self.rules.tenant)
        patience = Patience(self.rules, self.rules.deadline(timeout))
        delay: float | None = 0.0
        while delay is not None:
            self.sleep(delay)
            try:
                stream = Stream(self, "unary_stream", method, prepared, timeout, metadata)
                return (yield from stream.responses())
            except PolynymError as error:
                delay = patience.delay() if error.is_never_sent else None
                if delay is None:
                    raise

    def stream_stream(
        self,
        method: Method[Request, Response],
        requests: Iterable[Request],
        timeout: float | None = None,
        metadata: Metadata = (),
    ) -> Iterator[Response]:
        """Calls a method with several requests and responses. Nothing is retried."""
        stream = Stream(self, "stream_stream", method, iter(requests), timeout, metadata)
        yield from stream.responses()

    def run(self, steps: Steps[Result]) -> Result:
        """Performs the steps of a call, and returns its result."""
        try:
            step = next(steps)
            while True:
                try:
                    response = self._perform(step)
                except (grpc.RpcError, PolynymError) as fault:
                    step = steps.throw(fault)
                else:
                    step = steps.send(response)
        except StopIteration as end:
            result: Result = end.value
            return result

    def _perform(self, step: Send | Sleep) -> Any:
        if isinstance(step, Sleep):
            return self.sleep(step.seconds)
        # The connection lives as long as the call, so that `close` finds it.
        connection = self._connection(step.server)
        caller = connection.caller("unary_unary", step.method)
        end = time.monotonic() + step.timeout
        with self.errors_of_closing():
            self._wait_for(connection, end)
            timeout = max(end - time.monotonic(), 0)
            return caller(step.request, timeout=timeout, metadata=step.metadata)

    def _wait_for(self, connection: Connection, end: float) -> None:
        for seconds in connection.looks(end, self.rules.servers):
            self.sleep(seconds)

    def sleep(self, seconds: float) -> None:
        """Waits, but not longer than until the client is closed."""
        self._closed.wait(seconds)

    def open(
        self, server: Server, kind: str, method: Method[Any, Any], request: Any, **options: Any
    ) -> Any:
        """Begins a stream, when there is a connection. Returns the call of gRPC."""
        connection = self._connection(server)
        with self.errors_of_closing():
            self._wait_for(connection, self.rules.deadline(options["timeout"]))
            call = connection.caller(kind, method)(request, **options)
        # A channel ends when nobody has it.
        self._connection_of[call] = connection
        return call

    def errors_of_closing(self) -> ErrorsOfClosing:
        """Raises the error of a closed client instead of that of a closed channel."""
        return ErrorsOfClosing(self.rules)


def core_of(channel: Any) -> Any:
    """Returns what knows the state of a channel, or None.

    The public function for this starts a thread, which fails when the channel is closed. Others,
    such as OpenTelemetry, put their own channels around those of gRPC.
    """
    while channel is not None and not hasattr(channel, "check_connectivity_state"):
        channel = getattr(channel, "_channel", None)
    return channel


def is_connecting(core: Any) -> bool:
    """Returns whether a channel has no connection yet. It begins to make one."""
    return core is not None and core.check_connectivity_state(True) in CONNECTING


class ErrorsOfClosing:
    """The block in which a channel may be closed by another thread."""

    __slots__ = ("_rules",)

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ValueError) and self._rules.is_closed:
            raise closed(is_never_sent=True) from error


class Stream:
    """A call with several responses."""

    def __init__(
        self,
        calls: Calls,
        kind: str,
        method: Method[Any, Any],
        request: Any,
        timeout: float | None,
        metadata: Metadata,
    ) -> None:
        self._rules = calls.rules
        self._rules.check()
        self._method = method
        self._began = time.monotonic()
        self._server = calls.rules.servers.next()
        options = {"timeout": timeout, "metadata": calls.rules.headers(metadata)}
        try:
            self._call = calls.open(self._server, kind, method, request, **options)
        except PolynymError as error:
            self._note(error)
            raise

    def __next__(self) -> Any:
        """Waits for a response."""
        return next(self._call)

    def responses(self) -> Iterator[Any]:
        """Yields the responses, with errors of this package."""
        error: PolynymError | None = None
        try:
            yield from self._call
        except grpc.RpcError as fault:
            error = self._rules.error_of(fault)
            raise error from fault
        finally:
            self.end(error)

    def end(self, error: PolynymError | None) -> None:
        """Notes the end of the stream, by an error or without one."""
        self._note(error)
        self.cancel()

    def _note(self, error: PolynymError | None) -> None:
        if error is not None and error.is_never_sent:
            self._server.leave()
        self._rules.observe(self._server, self._method, self._began, error)

    def cancel(self) -> None:
        """Cancels the call.

        An interceptor, such as that of OpenTelemetry, may make it a generator, which cannot be
        closed while another thread reads it: that thread gets one more response.
        """
        if hasattr(self._call, "cancel"):
            self._call.cancel()
        else:
            with suppress(ValueError):
                self._call.close()

    def replace_connection(self) -> None:
        """Lets the next call have a new connection."""
        self._server.replace_connection()
