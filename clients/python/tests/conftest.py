"""What the tests share."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from polynym import Client, v1
from polynym.testing import Server


@pytest.fixture
def tenant() -> str:
    """A tenant that no other test uses."""
    return f"test-{uuid.uuid4()}"


@pytest.fixture
def client(polynym_server: Server, tenant: str) -> Iterator[Client]:
    """A client of the tenant."""
    with Client(polynym_server.address, tenant=tenant, timeout=60) as client:
        yield client


@pytest.fixture
def create(client: Client) -> Callable[..., v1.User]:
    """Creates a user with names."""

    def create(*names: v1.Identifier, display_name: str = "") -> v1.User:
        identities = [v1.Identity(identifier=name) for name in names]
        user = v1.User(display_name=display_name, identities=identities)
        return client.registry.CreateUser(v1.CreateUserRequest(user=user)).user

    return create
