"""The servers of a client, which take its calls in turns, and their connections."""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from polynym._methods import Method
from polynym._settings import Address
from polynym.errors import PolynymError, unreachable

AWAY = 2.0
"""The seconds for which a server that cannot be reached gets no calls, if there are others."""
SILENT_DEADLINES = 2
"""How many attempts in a row reach their deadlines without an answer on a dead connection."""
FIRST_LOOK = 0.001
LONGEST_LOOK = 0.02
"""The first and the longest seconds between two looks at a connection that is being made."""


class Connection:
    """A channel of gRPC, and what calls methods on it."""

    def __init__(
        self, channel: Any, is_connecting: Callable[[], bool], intercepted: Any = None
    ) -> None:
        self.channel = channel
        self._is_connecting = is_connecting
        self._intercepted = channel if intercepted is None else intercepted
        self._callers: dict[str, Any] = {}

    def looks(self, end: float, servers: Servers) -> Iterator[float]:
        """Yields seconds to wait while the connection is being made. Raises at the end.

        gRPC does not tell whether it has sent a call, so a call waits here until it can be sent.
        """
        pause = FIRST_LOOK
        while self._is_connecting():
            left = end - time.monotonic()
            if left <= 0:
                raise unreachable(servers.names)
            yield min(pause, left)
            pause = min(2 * pause, LONGEST_LOOK)

    def caller(self, kind: str, method: Method[Any, Any]) -> Any:
        """Returns what calls a method."""
        caller = self._callers.get(method.path)
        if caller is None:
            caller = self._callers[method.path] = getattr(self._intercepted, kind)(
                method.path,
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            )
        return caller


class Server:
    """A server, and what is known of it."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.connection: Connection | None = None
        """The connection for the next call. The former one lives as long as its calls."""
        self._away_until = 0.0
        self._has_answered = False
        self._unanswered = 0
        self._lost_at = 0.0

    @property
    def is_away(self) -> bool:
        """Whether the server was not reached lately."""
        return time.monotonic() < self._away_until

    def try_again(self) -> None:
        """Notes a call to a server that was away: the others wait whether it succeeds."""
        if self._away_until:
            self.leave()

    def leave(self) -> None:
        """Notes that the server cannot be reached."""
        self._away_until = time.monotonic() + AWAY

    def answered(self) -> None:
        """Notes that the server has answered on this connection."""
        self._away_until = 0.0
        self._has_answered, self._unanswered = True, 0

    def failed(self, error: PolynymError) -> None:
        """Notes the failure of an attempt. The last of several deadlines ends the connection.

        A server that has never answered on it is left, if there are others.
        """
        if error.is_from_server:
            self.answered()
        elif error.is_never_sent:
            self.leave()
        elif error.code == "DEADLINE_EXCEEDED":
            self._expired()

    def _expired(self) -> None:
        if not self._has_answered:
            self.leave()
            return
        self._unanswered += 1
        if self._unanswered >= SILENT_DEADLINES:
            self.replace_connection()

    def loses(self, began: float) -> bool:
        """Notes that an attempt was lost. Returns whether it is the first one of its connection.

        A connection that ends takes many attempts with it.
        """
        is_first = began >= self._lost_at
        if is_first:
            self._lost_at = time.monotonic()
        return is_first

    def replace_connection(self) -> None:
        """Leaves a connection that seems dead. Calls on it go on."""
        self._has_answered, self._unanswered = False, 0
        self.connection = None


class Servers:
    """All servers of a client, at least one."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self.all = [Server(address) for address in addresses]
        self.names = [address.name for address in addresses]
        self._turns = itertools.count(random.randrange(len(self.all)))

    @property
    def any_is_near(self) -> bool:
        """Whether a server is not known to be away."""
        return any(not server.is_away for server in self.all)

    def next(self, failed: Server | None = None) -> Server:
        """Returns the server of the next attempt: another than one that failed, if possible."""
        if len(self.all) == 1:
            return self.all[0]
        turn = next(self._turns) % len(self.all)
        in_turn = self.all[turn:] + self.all[:turn]
        near = [server for server in in_turn if not server.is_away]
        others = [server for server in near if server is not failed]
        server = (others or near or in_turn)[0]
        server.try_again()
        return server


class Forks:
    """Whether this process was forked from one that had used gRPC, which does not survive that."""

    def __init__(self) -> None:
        self.count = 0
        self._used: set[str] = set()
        self._inherited: set[str] = set()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.count += 1
        self._inherited |= self._used

    def use(self, kind: str) -> None:
        """Notes that this process uses gRPC."""
        self._used.add(kind)

    def check(self, count: int) -> None:
        """Raises if a client that was made after so many forks cannot work."""
        if not self._inherited:
            return
        if count < self.count:
            raise RuntimeError(
                "this client was made before the process forked: make one in each worker"
            )
        # With its support for forks, gRPC survives one for threads, but not one for asyncio.
        if "asyncio" in self._inherited or not supports_forks():
            raise RuntimeError(
                "a client was used before the process forked: use clients in the workers only"
            )


def supports_forks() -> bool:
    """Returns whether the environment turns on the support of gRPC for forks."""
    value = os.environ.get("GRPC_ENABLE_FORK_SUPPORT", "").lower()
    return value in ("1", "y", "yes", "t", "true", "on")


FORKS = Forks()
"""The forks of this process."""
