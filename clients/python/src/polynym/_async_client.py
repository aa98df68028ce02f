"""The client for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any

import grpc

from polynym import _lookups, _pages, _watch, v1
from polynym._async_calls import AsyncCalls, is_cancelled
from polynym._batching import Batcher
from polynym._lookups import Answer, Consistency
from polynym._pages import EventTypes
from polynym._rules import Rules
from polynym._settings import ChannelOptions, PathLike, Settings
from polynym._watch import Progress, WatchEvent
from polynym.errors import PolynymError, from_rpc_error
from polynym.v1.stubs import (
    WATCH,
    AsyncAdminService,
    AsyncDirectoryService,
    AsyncInboxService,
    AsyncRegistryService,
)


class AsyncClient:
    """A client of a Polynym server for the tasks of one event loop.

    Look-ups that tasks make at the same time share calls.

    The services are `directory`, `registry`, `inbox` and `admin`: every method of the API is a
    method there. The methods of the client itself are shorthands.
    """

    directory: AsyncDirectoryService
    """Look-ups, searches and histories."""
    registry: AsyncRegistryService
    """Changes of users and their identities."""
    inbox: AsyncInboxService
    """Notices to users."""
    admin: AsyncAdminService
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
        batching: bool = True,
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
            batching: Whether look-ups that are made at the same time share calls.
            interceptors: Interceptors of grpc.aio.
            options: Further options of the gRPC channel.
        """
        settings = Settings(server, token, token_file, ca, cert, key, insecure)
        rules = Rules(tenant, timeout, retries, settings.token_source())
        self._calls = AsyncCalls(settings, rules, interceptors, options)

        self._batcher = Batcher(self._calls) if batching else None

        self.directory = AsyncDirectoryService(self._calls)
        self.registry = AsyncRegistryService(self._calls)
        self.inbox = AsyncInboxService(self._calls)
        self.admin = AsyncAdminService(self._calls)

    async def close(self) -> None:
        """Closes the connection. Open calls fail."""
        await self._calls.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def resolve(
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
        if self._batcher is not None and options.is_shareable:
            return await self._batcher.resolve(options, identifier, timeout)
        return await self.directory.ResolveIdentity(options.single(identifier), timeout=timeout)

    async def resolve_many(
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
        return await calls.run(
            _lookups.resolve_many(calls.rules, options, list(identifiers), timeout)
        )

    async def get_user(
        self,
        user_id: str,
        *,
        tenant: str = "",
        fields: Iterable[str] | None = None,
        timeout: float | None = None,
    ) -> v1.User:
        """Returns a user; for the id of a merged user, the one that it was merged into."""
        request = _pages.user_request(user_id, tenant, fields)
        return (await self.directory.GetUser(request, timeout=timeout)).user

    async def search(
        self,
        filter: str = "",  # noqa: A002
        order_by: str = "",
        *,
        tenant: str = "",
        fields: Iterable[str] | None = None,
        page_size: int = 0,
        timeout: float | None = None,
    ) -> AsyncIterator[v1.User]:
        """Yields the users that match a filter; all users without one.

        Reads page by page. The timeout is that of each page.
        """
        request = _pages.search_request(filter, order_by, tenant, fields, page_size)
        has_more = True
        while has_more:
            page = await self.directory.SearchUsers(request, timeout=timeout)
            for user in page.users:
                yield user
            has_more = _pages.advance(request, page)

    async def history(
        self,
        user: str | v1.Identifier,
        *,
        start: datetime | None = None,
        end: datetime | None = None,
        types: EventTypes = (),
        tenant: str = "",
        page_size: int = 0,
        timeout: float | None = None,
    ) -> AsyncIterator[v1.Event]:
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
            page = await self.directory.ListHistory(request, timeout=timeout)
            for event in page.events:
                yield event
            has_more = _pages.advance(request, page)

    def watch(
        self,
        *,
        resume_token: str = "",
        user_ids: Iterable[str] = (),
        types: EventTypes = (),
        tenant: str = "",
    ) -> AsyncWatch:
        """Watches the events of a tenant as they are committed.

        Args:
            resume_token: The token of an earlier watch of the same users and kinds, to resume
                after it; by default, the watch begins now.
            user_ids: The users to watch; all by default.
            types: The kinds of events; all by default.
            tenant: The tenant to watch.
        """
        request = _watch.watch_request(resume_token, list(user_ids), list(types), tenant)
        return AsyncWatch(self._calls, Progress(request, self._calls.rules))


class AsyncWatch(AsyncIterator[WatchEvent]):
    """Yields events with their tokens, and resumes by itself when the connection is lost.

    Entering it as a context manager waits until the watch has begun: changes that are acknowledged
    after that are among its events. Leaving it ends the watch.
    """

    def __init__(self, calls: AsyncCalls, progress: Progress) -> None:
        self._calls = calls
        self._progress = progress
        self._is_closed = False
        self._call: Any = None
        self._responses: AsyncIterator[v1.WatchResponse] | None = None
        self._early: WatchEvent | None = None

    @property
    def resume_token(self) -> str:
        """The token with which a later watch resumes after what was received so far."""
        return self._progress.resume_token

    def close(self) -> None:
        """Ends the watch. Its iteration ends."""
        self._is_closed = True
        if self._call is not None:
            self._call.cancel()

    async def __aenter__(self) -> AsyncWatch:
        self._early = await self._receive()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __aiter__(self) -> AsyncWatch:
        return self

    async def __anext__(self) -> WatchEvent:
        event, self._early = self._early, None
        while event is None:
            if self._is_closed:
                raise StopAsyncIteration
            event = await self._receive()
        return event

    async def _receive(self) -> WatchEvent | None:
        """Waits for a response, of this connection or the next. Returns its event, if any."""
        while not self._is_closed:
            try:
                return self._progress.accept(await self._next_response())
            except asyncio.TimeoutError:
                self._calls.rules.replace_connection()
                error = _watch.ENDED
            except StopAsyncIteration:
                error = _watch.ENDED
            except grpc.RpcError as fault:
                error = from_rpc_error(fault)
            except asyncio.CancelledError:
                if not self._is_closed or is_cancelled():
                    raise
                break
            self._end_call()
            await self._wait_before_resuming(error)
        return None

    def _end_call(self) -> None:
        call, self._call, self._responses = self._call, None, None
        if call is not None:
            call.cancel()

    async def _wait_before_resuming(self, error: PolynymError) -> None:
        delay = self._progress.delay(error)
        if delay is None:
            self.close()
            raise error
        await asyncio.sleep(delay)

    async def _next_response(self) -> v1.WatchResponse:
        if self._responses is not None:
            # A server that is silent counts as lost.
            return await asyncio.wait_for(anext(self._responses), _watch.LONGEST_SILENCE)
        self._call = self._calls.open_stream(WATCH, self._progress.request(), None, ())
        responses: AsyncIterator[v1.WatchResponse] = aiter(self._call)
        first = await asyncio.wait_for(anext(responses), _watch.FIRST_RESPONSE)
        self._responses = responses
        return first
