"""The client for threads."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any

import grpc

from polynym import _lookups, _pages, _watch, v1
from polynym._calls import Calls, cancel
from polynym._lookups import Answer, Consistency
from polynym._pages import EventTypes
from polynym._rules import Rules
from polynym._settings import ChannelOptions, PathLike, Settings
from polynym._watch import Progress, Watchdog, WatchEvent
from polynym.errors import PolynymError, from_rpc_error
from polynym.v1.stubs import (
    WATCH,
    AdminService,
    DirectoryService,
    InboxService,
    RegistryService,
)


class Client:
    """A client of a Polynym server, which threads can share.

    The services are `directory`, `registry`, `inbox` and `admin`: every method of the API is a
    method there. The methods of the client itself are shorthands.
    """

    directory: DirectoryService
    """Look-ups, searches and histories."""
    registry: RegistryService
    """Changes of users and their identities."""
    inbox: InboxService
    """Notices to users."""
    admin: AdminService
    """Administration of tenants."""

    def __init__(
        self,
        server: str | None = None,
        *,
        token: str | None = None,
        token_file: PathLike | None = None,
        ca: PathLike | None = None,
        cert: PathLike | None = None,
        key: PathLike | None = None,
        insecure: bool = False,
        tenant: str = "",
        timeout: float = 2.0,
        retries: int = 2,
        interceptors: Sequence[Any] = (),
        options: ChannelOptions = (),
    ) -> None:
        """Makes a client. It connects with the first call.

        Args:
            server: `https://HOST:PORT`, `http://HOST:PORT` or `HOST:PORT`; by default
                `POLYNYM_SERVER`, and then `http://127.0.0.1:7171`.
            token: The caller's token.
            token_file: A file with the token, read again when it changes; by default
                `POLYNYM_TOKEN_FILE`.
            ca: A file with the certificate authorities to trust, as PEM; by default `POLYNYM_CA`,
                and then those of the system.
            cert: A file with the client's certificate, as PEM.
            key: A file with its key.
            insecure: Whether a token may be sent without encryption beyond this machine.
            tenant: The tenant of requests that name none.
            timeout: The seconds for a call with all of its attempts.
            retries: How many further attempts follow one that failed.
            interceptors: Interceptors of gRPC.
            options: Further options of the gRPC channel.
        """
        settings = Settings(server, token, token_file, ca, cert, key, insecure)
        rules = Rules(tenant, timeout, retries, settings.token_source())
        self._calls = Calls(settings, rules, interceptors, options)

        self.directory = DirectoryService(self._calls)
        self.registry = RegistryService(self._calls)
        self.inbox = InboxService(self._calls)
        self.admin = AdminService(self._calls)

    def close(self) -> None:
        """Closes the connection. Open calls fail."""
        self._calls.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def resolve(
        self,
        identifier: v1.Identifier,
        *,
        tenant: str = "",
        consistency: Consistency | None = None,
        max_staleness: timedelta | None = None,
        show_disabled: bool = False,
        fields: Iterable[str] | None = None,
        as_of: datetime | None = None,
        timeout: float | None = None,
    ) -> v1.ResolveIdentityResponse:
        """Returns the user who owns an identifier. Raises `NotFound` if nobody does.

        Args:
            identifier: The identifier, such as `email("joe@example.com")`.
            tenant: The tenant to look in.
            consistency: How fresh the answer must be.
            max_staleness: Accepts an answer from a cache, at most this old.
            show_disabled: Whether to return a disabled user instead of raising.
            fields: The fields of the user to return, such as `user_id`; all by default.
            as_of: Looks up who owned the identifier at this time.
            timeout: The seconds for the call with all of its attempts.
        """
        options = _lookups.look_up(tenant, consistency, max_staleness, show_disabled, fields, as_of)
        return self.directory.ResolveIdentity(options.single(identifier), timeout=timeout)

    def resolve_many(
        self,
        identifiers: Iterable[v1.Identifier],
        *,
        tenant: str = "",
        consistency: Consistency | None = None,
        max_staleness: timedelta | None = None,
        show_disabled: bool = False,
        fields: Iterable[str] | None = None,
        as_of: datetime | None = None,
        timeout: float | None = None,
    ) -> list[Answer]:
        """Returns the owners of any number of identifiers, in their order.

        An identifier without an owner has an error in its place: nothing is raised. The timeout is
        that of each batch.
        """
        options = _lookups.look_up(tenant, consistency, max_staleness, show_disabled, fields, as_of)
        calls = self._calls
        return calls.run(_lookups.resolve_many(calls.rules, options, list(identifiers), timeout))

    def get_user(
        self,
        user_id: str,
        *,
        tenant: str = "",
        fields: Iterable[str] | None = None,
        timeout: float | None = None,
    ) -> v1.User:
        """Returns a user; for the id of a merged user, the one that it was merged into."""
        request = _pages.user_request(user_id, tenant, fields)
        return self.directory.GetUser(request, timeout=timeout).user

    def search(
        self,
        filter: str = "",  # noqa: A002
        order_by: str = "",
        *,
        tenant: str = "",
        fields: Iterable[str] | None = None,
        page_size: int = 0,
        timeout: float | None = None,
    ) -> Iterator[v1.User]:
        """Yields the users that match a filter; all users without one.

        Reads page by page. The timeout is that of each page.
        """
        request = _pages.search_request(filter, order_by, tenant, fields, page_size)
        has_more = True
        while has_more:
            page = self.directory.SearchUsers(request, timeout=timeout)
            yield from page.users
            has_more = _pages.advance(request, page)

    def history(
        self,
        user: str | v1.Identifier,
        *,
        start: datetime | None = None,
        end: datetime | None = None,
        types: EventTypes = (),
        tenant: str = "",
        page_size: int = 0,
        timeout: float | None = None,
    ) -> Iterator[v1.Event]:
        """Yields the events of a user, newest first.

        Args:
            user: The user's id, or an identifier that it owns.
            start: The start of the period, inclusive.
            end: The end of the period, exclusive.
            types: The kinds of events; all by default.
            tenant: The user's tenant.
            page_size: How many events to read at a time.
            timeout: The seconds for each page.
        """
        request = _pages.history_request(user, start, end, types, tenant, page_size)
        has_more = True
        while has_more:
            page = self.directory.ListHistory(request, timeout=timeout)
            yield from page.events
            has_more = _pages.advance(request, page)

    def watch(
        self,
        *,
        resume_token: str = "",
        user_ids: Iterable[str] = (),
        types: EventTypes = (),
        tenant: str = "",
    ) -> Watch:
        """Watches the events of a tenant as they are committed.

        Args:
            resume_token: The token of an earlier watch of the same users and kinds, to resume
                after it; by default, the watch begins now.
            user_ids: The users to watch; all by default.
            types: The kinds of events; all by default.
            tenant: The tenant to watch.
        """
        request = _watch.watch_request(resume_token, list(user_ids), list(types), tenant)
        return Watch(self._calls, Progress(request, self._calls.rules))


class Watch(Iterator[WatchEvent]):
    """Yields events with their tokens, and resumes by itself when the connection is lost.

    Entering it as a context manager waits until the watch has begun: changes that are acknowledged
    after that are among its events. Leaving it ends the watch.
    """

    def __init__(self, calls: Calls, progress: Progress) -> None:
        self._calls = calls
        self._progress = progress
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._call: Any = None
        self._watchdog: Watchdog | None = None
        self._early: WatchEvent | None = None

    @property
    def resume_token(self) -> str:
        """The token with which a later watch resumes after what was received so far."""
        return self._progress.resume_token

    def close(self) -> None:
        """Ends the watch. Another thread may wait for an event: its iteration ends."""
        with self._lock:
            self._closed.set()
            if self._watchdog is not None:
                self._watchdog.stop()
            if self._call is not None:
                cancel(self._call)

    def __enter__(self) -> Watch:
        with contextlib.suppress(StopIteration):
            self._early = self._receive()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __iter__(self) -> Watch:
        return self

    def __next__(self) -> WatchEvent:
        event, self._early = self._early, None
        while event is None:
            event = self._receive()
        return event

    def _receive(self) -> WatchEvent | None:
        """Waits for a response, of this connection or the next."""
        while True:
            try:
                response = self._next_response()
                if not self._closed.is_set():
                    return self._progress.accept(response)
                error = _watch.ENDED
            except StopIteration:
                error = _watch.ENDED
            except grpc.RpcError as fault:
                error = from_rpc_error(fault)
            self._call = None
            if self._watchdog is not None:
                self._watchdog.stop()
            self._wait_before_resuming(error)

    def _wait_before_resuming(self, error: PolynymError) -> None:
        delay = None if self._closed.is_set() else self._progress.delay(error)
        if delay is not None and not self._closed.wait(delay):
            return
        is_closed = self._closed.is_set()
        self.close()
        if is_closed:
            raise StopIteration
        raise error

    def _give_up(self, call: Any) -> None:
        """Ends a call without an answer. The next one has a new connection."""
        self._calls.rules.replace_connection()
        cancel(call)

    def _next_response(self) -> v1.WatchResponse:
        if self._call is None:
            self._open()
        elif self._watchdog is not None:
            self._watchdog.expect()
        response: v1.WatchResponse = next(self._call)
        if self._watchdog is not None:
            self._watchdog.rest()
        return response

    def _open(self) -> None:
        with self._lock:
            if self._closed.is_set():
                raise StopIteration
            request = self._progress.request()
            call = self._calls.open_stream(WATCH, request, None, ())
            self._call = call
            self._watchdog = Watchdog(lambda: self._give_up(call))
