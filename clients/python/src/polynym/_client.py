"""The client for threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any

from polynym import _lookups, _pages, _watch, v1
from polynym._calls import Calls
from polynym._lookups import Answer, Consistency, Found
from polynym._pages import EventTypes
from polynym._rules import Observer, Rules, connect
from polynym._servers import Servers
from polynym._settings import ChannelOptions, PathLike, Settings
from polynym._thread_batching import ThreadBatcher
from polynym.v1.stubs import (
    AdminService,
    DirectoryService,
    InboxService,
    RegistryService,
)


class Client:
    """A client of a Polynym server, which threads can share.

    Look-ups that threads make at the same time share calls.

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
        server: str | Sequence[str] | None = None,
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
        wait_for_ready: bool = True,
        first_wait: float = 0.05,
        longest_wait: float = 1.0,
        batching: bool = True,
        observer: Observer | None = None,
        interceptors: Sequence[Any] = (),
        options: ChannelOptions = (),
    ) -> None:
        """Makes a client. It connects with the first call.

        Args:
            server: `https://HOST:PORT`, `http://HOST:PORT` or `HOST:PORT`; by default
                `POLYNYM_SERVER`, and then `http://127.0.0.1:7171`. Several are a list, or a text
                with commas: they take turns, and stand in for one another.
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
            wait_for_ready: Whether calls wait for a server that cannot be reached, until their
                deadlines. Otherwise they fail at once.
            first_wait: The seconds between the first two tries to connect; then twice as long.
            longest_wait: The most seconds between two tries to connect.
            batching: Whether look-ups that are made at the same time share calls.
            observer: A function that is called after each attempt, with an `Attempt`.
            interceptors: Interceptors of gRPC.
            options: Further options of the gRPC channel.
        """
        settings = Settings(server, token, token_file, ca, cert, key, insecure)
        source = settings.token_source()
        rules = Rules(
            tenant=tenant,
            timeout=timeout,
            retries=retries,
            token=source,
            servers=Servers(settings.checked_addresses(source())),
            wait_for_ready=wait_for_ready,
            first_wait=first_wait,
            longest_wait=longest_wait,
            observer=observer,
        )
        self._calls = Calls(settings, rules, interceptors, options)
        self._batcher = ThreadBatcher(self._calls) if batching else None

        self.directory = DirectoryService(self._calls)
        self.registry = RegistryService(self._calls)
        self.inbox = InboxService(self._calls)
        self.admin = AdminService(self._calls)

    def connect(self) -> Client:
        """Connects now, not with the first call, and returns the client.

        Raises `Unavailable` if no server can be reached within the client's timeout.
        """
        self._calls.run(connect(self._calls.rules))
        return self

    def close(self) -> None:
        """Closes the connections. Open calls fail, and later ones, too: with `Closed`."""
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
        if self._batcher is not None and options.is_shareable:
            return self._batcher.resolve(options, identifier, timeout)
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

    def get_or_create(
        self,
        identifier: v1.Identifier,
        user: v1.User | None = None,
        *,
        tenant: str = "",
        timeout: float | None = None,
    ) -> Found:
        """Returns the owner of an identifier, and creates it if there is none: `user, created`.

        However many callers do this at the same time, one user is created.

        Args:
            identifier: The identifier. It is the first identity of a new user, unless it is there.
            user: What a new user has.
            tenant: The tenant of the user.
            timeout: The seconds for all calls together.
        """
        rules, new = self._calls.rules, v1.User() if user is None else user
        steps = _lookups.get_or_create(rules, identifier, new, tenant, timeout)
        return self._calls.run(steps)

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
        return self.directory.search_users(request, timeout=timeout)

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
        return self.directory.list_history(request, timeout=timeout)

    def watch(
        self,
        *,
        resume_token: str = "",
        user_ids: Iterable[str] = (),
        types: EventTypes = (),
        tenant: str = "",
    ) -> _watch.Watch:
        """Watches the events of a tenant as they are committed.

        Args:
            resume_token: The token of an earlier watch of the same users and kinds, to resume
                after it; by default, the watch begins now.
            user_ids: The users to watch; all by default.
            types: The kinds of events; all by default.
            tenant: The tenant to watch.
        """
        request = _watch.watch_request(resume_token, list(user_ids), list(types), tenant)
        return _watch.Watch(self._calls, _watch.Progress(request, self._calls.rules))
