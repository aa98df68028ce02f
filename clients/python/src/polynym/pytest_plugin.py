"""The fixture of pytest that runs a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from polynym.testing import Server


@pytest.fixture(scope="session")
def polynym_server() -> Iterator[Server]:
    """A server with an empty store, for all tests of a run."""
    from polynym.testing import serve

    with serve() as server:
        yield server
