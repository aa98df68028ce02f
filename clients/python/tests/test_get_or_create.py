"""A user that is got, or created if there is none."""

from __future__ import annotations

from typing import Any

import pytest
from scripted import Fault, perform

from polynym import AlreadyExists, Client, Found, InvalidArgument, PolynymError, email, handle, v1
from polynym._lookups import get_or_create
from polynym._rules import Rules

JOE = email("joe@example.com")
ANN = email("ann@example.com")
NOBODY = Fault("NOT_FOUND", "IDENTITY_NOT_FOUND")
TAKEN = Fault("ALREADY_EXISTS", "IDENTITY_TAKEN")
RESOLVED = v1.ResolveIdentityResponse(user=v1.User(display_name="Joe"))
CREATED = v1.CreateUserResponse(user=v1.User(display_name="Joe"))


def run(*outcomes: Any) -> tuple[Any, list[Any]]:
    """Returns the result or error, and the requests."""
    new = v1.User(display_name="Joe", identities=[v1.Identity(identifier=ANN)])
    steps = get_or_create(Rules(tenant="eu"), JOE, new, "", 60)
    result, requests, _ = perform(steps, *outcomes)
    return result, requests


def test_a_user_who_is_there_is_got() -> None:
    result, requests = run(RESOLVED)
    assert result == Found(RESOLVED.user, created=False)
    assert len(requests) == 1


def test_a_user_who_is_not_there_is_created_with_the_identifier() -> None:
    result, requests = run(NOBODY, Fault("UNAVAILABLE"), CREATED)
    assert result == Found(CREATED.user, created=True)
    assert requests[1].user.display_name == "Joe"
    assert [identity.identifier for identity in requests[1].user.identities] == [JOE, ANN]
    assert requests[1].request_id
    assert requests[1] == requests[2]
    assert {request.tenant for request in requests} == {"eu"}


def test_whoever_is_late_gets_the_user_of_another_caller() -> None:
    result, requests = run(NOBODY, TAKEN, RESOLVED)
    assert result == Found(RESOLVED.user, created=False)
    assert requests[2].consistency == v1.CONSISTENCY_LINEARIZABLE


def test_another_identity_that_is_taken_is_an_error() -> None:
    result, _ = run(NOBODY, TAKEN, NOBODY)
    assert isinstance(result, AlreadyExists)


@pytest.mark.parametrize(
    "outcomes",
    [
        [Fault("NOT_FOUND", "TENANT_NOT_FOUND")],
        [NOBODY, Fault("ALREADY_EXISTS", "USER_EXISTS")],
    ],
)
def test_other_reasons_are_errors(outcomes: list[Any]) -> None:
    result, _ = run(*outcomes)
    assert isinstance(result, PolynymError)
    assert result.code == outcomes[-1].code().name


def test_an_identity_of_the_user_is_not_repeated(client: Client) -> None:
    names = [handle("ann"), email("ann@example.com")]
    user = v1.User(identities=[v1.Identity(identifier=name) for name in names])
    found = client.get_or_create(names[1], user)
    assert found.created
    assert [identity.identifier for identity in found.user.identities] == names
    assert client.get_or_create(names[0]) == Found(found.user, created=False)
    with pytest.raises(InvalidArgument):
        client.get_or_create(email("no-address"))
