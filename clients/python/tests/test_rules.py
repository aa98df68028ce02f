"""The rules of a call: which errors are retried, when, and what is known of the outcome."""

from __future__ import annotations

import time
from typing import Any

import pytest
from scripted import Fault, perform

import polynym
from polynym import PolynymError, v1
from polynym._rules import Rules
from polynym.v1.stubs import CREATE_USER, MARK_READ, RESOLVE_IDENTITY

READ = (RESOLVE_IDENTITY, v1.ResolveIdentityRequest())
CREATE = (CREATE_USER, v1.CreateUserRequest())
MARK = (MARK_READ, v1.MarkReadRequest())


def run(call: Any, *outcomes: Any, rules: Rules | None = None, seconds: float = 2.0) -> Any:
    """Performs a call whose attempts have outcomes. Returns its result, requests and delays."""
    method, request = call
    steps = (rules or Rules()).call(method, request, time.monotonic() + seconds)
    return perform(steps, *outcomes)


LOST = Fault("UNAVAILABLE")
REFUSED = Fault("UNAVAILABLE", "RULES_CHANGING")
DONE = v1.CreateUserResponse()


@pytest.mark.parametrize("code", ["UNAVAILABLE", "CANCELLED", "INTERNAL", "UNKNOWN"])
def test_lost_connections_are_retried(code: str) -> None:
    result, requests, delays = run(READ, Fault(code), Fault(code), DONE)
    assert result is DONE
    assert len(requests) == 3
    assert 0 <= delays[0] <= 0.2
    assert 0 <= delays[1] <= 0.4


def test_three_attempts_are_made_at_most() -> None:
    result, requests, _ = run(READ, LOST, LOST, LOST)
    assert type(result) is polynym.Unavailable
    assert len(requests) == 3
    result, requests, _ = run(READ, LOST, rules=Rules(retries=0))
    assert len(requests) == 1


def test_the_server_sets_the_delay() -> None:
    fault = Fault("RESOURCE_EXHAUSTED", "RATE_LIMITED", delay=0.5)
    result, _, delays = run(READ, fault, DONE)
    assert result is DONE
    assert 0.5 <= delays[0] <= 0.6


def test_a_delay_beyond_the_deadline_is_not_waited_for() -> None:
    fault = Fault("RESOURCE_EXHAUSTED", "RATE_LIMITED", delay=5)
    result, _, delays = run(READ, fault)
    assert type(result) is polynym.ResourceExhausted
    assert result.retry_after == 5
    assert delays == []


@pytest.mark.parametrize(
    "fault",
    [
        Fault("NOT_FOUND", "IDENTITY_NOT_FOUND"),
        Fault("RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED"),
        Fault("UNKNOWN", "OUTCOME_UNKNOWN"),
        Fault("INTERNAL", "INTERNAL"),
        Fault("DEADLINE_EXCEEDED"),
        Fault("UNIMPLEMENTED"),
    ],
)
def test_other_errors_of_reads_are_final(fault: Fault) -> None:
    result, _, _ = run(READ, fault)
    assert result.code == fault.code().name
    assert not isinstance(result, polynym.OutcomeUnknown)
    assert result.__cause__ is fault


def test_all_attempts_have_one_request_id_and_the_default_tenant() -> None:
    lost = Fault("UNKNOWN", "OUTCOME_UNKNOWN")
    result, requests, _ = run(CREATE, lost, LOST, DONE, rules=Rules(tenant="eu"))
    assert result is DONE
    assert requests[0].request_id
    assert requests[0] == requests[1] == requests[2]
    assert requests[0].tenant == "eu"
    assert CREATE[1] == v1.CreateUserRequest()
    other = run(CREATE, DONE)[1][0]
    assert other.request_id != requests[0].request_id

    given = (CREATE_USER, v1.CreateUserRequest(request_id="mine", tenant="us"))
    _, requests, _ = run(given, DONE, rules=Rules(tenant="eu"))
    assert requests[0] is given[1]


@pytest.mark.parametrize(
    "outcomes",
    [
        [LOST, LOST, LOST],
        [LOST, REFUSED, REFUSED],
        [Fault("INTERNAL"), Fault("UNAUTHENTICATED", "CREDENTIAL_INVALID")],
        [Fault("DEADLINE_EXCEEDED")],
        [Fault("DEADLINE_EXCEEDED", "DEADLINE")],
        [Fault("RESOURCE_EXHAUSTED", "ANSWERS_UNREAD")],
        [Fault("RESOURCE_EXHAUSTED")],
    ],
)
def test_an_outcome_that_no_answer_settles_is_unknown(outcomes: list[Any]) -> None:
    result, requests, _ = run(CREATE, *outcomes)
    assert type(result) is polynym.OutcomeUnknown
    assert result.code == outcomes[-1].code().name
    assert result.request_id == requests[0].request_id


@pytest.mark.parametrize(
    "outcomes",
    [
        [REFUSED, REFUSED, REFUSED],
        [LOST, Fault("ALREADY_EXISTS", "IDENTITY_TAKEN")],
        [Fault("PERMISSION_DENIED", "ROLE_DENIED")],
    ],
)
def test_a_definite_answer_settles_the_outcome(outcomes: list[Any]) -> None:
    result, _, _ = run(CREATE, *outcomes)
    assert isinstance(result, PolynymError)
    assert not isinstance(result, polynym.OutcomeUnknown)
    assert result.code == outcomes[-1].code().name


def test_a_mutation_without_a_request_id_is_not_repeated_when_it_may_have_happened() -> None:
    result, _, _ = run(MARK, LOST)
    assert type(result) is polynym.OutcomeUnknown
    result, _, _ = run(MARK, REFUSED, DONE)
    assert result is DONE
