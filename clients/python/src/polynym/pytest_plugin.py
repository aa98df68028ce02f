"""The fixture of pytest that runs a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from polynym.testing import Server


@pytest.fixture(scope="session")
def polynym_server() -> Iterator[Server]:
    """A server with an empty store, for all tests of a run.

    A tenant begins with the first change in it: tests with tenants of their own do not see each
    other's users.
    """
    from polynym.testing import serve

    with serve() as server:
        yield server
