"""The rules of a call: which errors are retried, when, and what is known of the outcome."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import pytest
from scripted import Fault, perform, perform_always

import polynym
from polynym import PolynymError, v1
from polynym._rules import TOKENS, Rules, Sleep
from polynym.errors import closed
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


UNREACHABLE = Fault("UNAVAILABLE", text="failed to connect to all addresses; last error: x")


def test_a_connection_is_waited_for_until_the_deadline() -> None:
    result, requests, delays = run(CREATE, *[UNREACHABLE] * 8, DONE, seconds=60)
    assert result is DONE
    assert len(requests) == 9
    for n, delay in enumerate(delays):
        longest = min(0.05 * 2**n, 1)
        assert longest / 2 <= delay <= longest
    rules = Rules(first_wait=0.5, longest_wait=0.6)
    delays = run(READ, *[UNREACHABLE] * 3, DONE, rules=rules, seconds=60)[2]
    assert [0.25, 0.3, 0.3] <= delays <= [0.5, 0.6, 0.6]


def test_a_wait_for_a_server_takes_at_most_half_of_the_time_that_is_left() -> None:
    rules = Rules(first_wait=9, longest_wait=9)
    result, _, delays = run(READ, UNREACHABLE, DONE, rules=rules, seconds=2)
    assert result is DONE
    assert delays <= [1]


@pytest.mark.parametrize(("rules", "seconds"), [(Rules(), 0.01), (Rules(wait_for_ready=False), 60)])
def test_a_change_that_was_never_sent_did_not_happen(rules: Rules, seconds: float) -> None:
    result, _, delays = run(CREATE, UNREACHABLE, rules=rules, seconds=seconds)
    assert type(result) is polynym.Unavailable
    assert result.message == "the server 127.0.0.1:7171 cannot be reached"
    assert result.is_never_sent
    assert delays == []


def test_what_was_never_sent_is_no_attempt_and_takes_no_token() -> None:
    rules = Rules()
    outcomes = [UNREACHABLE, UNREACHABLE, LOST, UNREACHABLE, REFUSED, DONE]
    assert run(READ, *outcomes, rules=rules, seconds=60)[0] is DONE
    result, _, _ = run(CREATE, LOST, UNREACHABLE, rules=Rules(wait_for_ready=False))
    assert type(result) is polynym.OutcomeUnknown, "the first attempt may have happened"


@pytest.mark.parametrize(
    "text",
    [
        "Stream removed (GOAWAY received; Error code: 0; Debug Text: )",
        "Stream removed (RST_STREAM (Received RST_STREAM with error code 7))",
        "connections to all backends failing; last error: refused",
        "errors resolving users:1",
    ],
)
def test_what_a_server_did_not_see_was_never_sent(text: str) -> None:
    assert run(CREATE, Fault("UNAVAILABLE", text=text), DONE)[0] is DONE
    # A call that was open when the connection ended after its GOAWAY may have happened.
    lost = Fault("UNAVAILABLE", text="Stream removed (recvmsg:reset (GOAWAY received; ))")
    assert type(run(MARK, lost)[0]) is polynym.OutcomeUnknown


def test_in_a_lasting_outage_few_calls_are_repeated() -> None:
    rules = Rules()
    counts = []
    for _ in range(100):
        steps = rules.call(*READ, time.monotonic() + 60)
        counts.append(len(perform_always(steps, REFUSED)))
    assert sum(counts) <= 110
    assert set(counts[10:]) == {1}
    for _ in range(70):
        run(READ, DONE, rules=rules)
    assert run(READ, REFUSED, DONE, rules=rules)[0] is DONE


def test_a_delay_of_the_server_takes_no_token() -> None:
    rules = Rules()
    limited = Fault("RESOURCE_EXHAUSTED", "RATE_LIMITED", delay=0.01)
    for _ in range(20):
        assert run(READ, limited, limited, DONE, rules=rules)[0] is DONE


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_change_whose_client_is_closed_when_it_is_sent(is_lost: bool) -> None:
    # Another thread closes it. Only the attempt before may have happened.
    rules = Rules()
    steps = rules.call(*CREATE, time.monotonic() + 60)
    next(steps)
    if is_lost:
        assert isinstance(steps.throw(LOST), Sleep)
        next(steps)
    rules.is_closed = True
    with pytest.raises(PolynymError) as raised:
        steps.throw(closed(is_never_sent=True))
    assert type(raised.value) is (polynym.OutcomeUnknown if is_lost else polynym.Closed)
    assert raised.value.request_id


def test_a_connection_that_ends_with_many_calls_counts_once() -> None:
    rules = Rules()
    calls = [rules.call(*READ, time.monotonic() + 60) for _ in range(32)]
    for call in calls:
        next(call)
    for call in calls:
        assert isinstance(call.throw(LOST), Sleep)


@pytest.mark.parametrize("end", [Fault("DEADLINE_EXCEEDED"), UNREACHABLE])
def test_the_end_of_another_call_hides_no_lost_connection(end: Fault) -> None:
    rules = Rules()
    first, second = (rules.call(*READ, time.monotonic() + 60) for _ in range(2))
    next(first)
    next(second)
    with suppress(PolynymError):
        first.throw(end)
    second.throw(LOST)
    assert rules.budget._tokens == TOKENS - 1


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault("UNAVAILABLE", text="io exception"), "the connection to the server was lost"),
        (Fault("DEADLINE_EXCEEDED", text="Deadline Exceeded"), "the deadline has passed"),
        (Fault("UNIMPLEMENTED", text="http2 404"), "the answer is not that of a Polynym server"),
    ],
)
def test_texts_of_errors_are_ours(fault: Fault, text: str) -> None:
    result, _, _ = run(READ, fault, rules=Rules(retries=0))
    assert result.message == text


def test_an_observer_sees_each_attempt() -> None:
    seen: list[polynym.Attempt] = []
    rules = Rules(observer=seen.append)
    run(READ, UNREACHABLE, REFUSED, DONE, rules=rules)
    found = [(attempt.method, attempt.number, attempt.code, attempt.reason) for attempt in seen]
    assert found == [
        ("ResolveIdentity", 1, "UNAVAILABLE", ""),
        ("ResolveIdentity", 1, "UNAVAILABLE", "RULES_CHANGING"),
        ("ResolveIdentity", 2, "OK", ""),
    ]
    assert {(attempt.service, attempt.server) for attempt in seen} == {
        ("polynym.v1.DirectoryService", ""),
        ("polynym.v1.DirectoryService", "127.0.0.1:7171"),
    }
    assert all(attempt.duration >= 0 for attempt in seen)


def test_an_observer_that_fails_harms_no_call(caplog: pytest.LogCaptureFixture) -> None:
    def fail(attempt: polynym.Attempt) -> None:
        raise ValueError("a fault of the observer")

    assert run(READ, DONE, rules=Rules(observer=fail))[0] is DONE
    assert "the observer failed" in caplog.text
