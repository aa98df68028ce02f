"""Batches of any number of identifiers, with answers that do not fit."""

from __future__ import annotations

from typing import Any

import pytest
from scripted import Fault, perform

import polynym
from polynym import PolynymError, handle, v1
from polynym._lookups import BATCH_BYTES, LookUp, resolve_many
from polynym._rules import Rules

Response = v1.BatchResolveIdentitiesResponse
Result = Response.Result
NO_ROOM = Result(error=Fault("RESOURCE_EXHAUSTED", "ANSWER_TOO_LARGE").status)
TOO_LARGE = Result(error=Fault("RESOURCE_EXHAUSTED", "USER_TOO_LARGE").status)


def run(names: list[str], *outcomes: Any) -> tuple[list[Any], list[Any]]:
    """Looks handles up. Returns names or errors, and the requests."""
    identifiers = [handle(name) for name in names]
    steps = resolve_many(Rules(retries=0), LookUp(tenant="eu"), identifiers, None)
    answers, requests, _ = perform(steps, *outcomes)
    assert isinstance(answers, list), answers
    return [read(answer) for answer in answers], requests


def read(answer: polynym.Answer) -> Any:
    """Returns the name of a found user, or the reason of an error."""
    if isinstance(answer, PolynymError):
        return answer.reason or answer.code
    return answer.user.display_name


def found(*names: str) -> list[Result]:
    """Returns results with users of these names."""
    return [Result(found=Response.Found(user=v1.User(display_name=name))) for name in names]


def asked(request: Any) -> list[str]:
    """Returns the handles of a request."""
    assert request.tenant == "eu"
    is_batch = isinstance(request, v1.BatchResolveIdentitiesRequest)
    identifiers = request.identifiers if is_batch else [request.identifier]
    return [identifier.handle for identifier in identifiers]


def test_items_without_room_go_with_the_next_batch() -> None:
    names = [f"user{n}" for n in range(1200)]
    answers, requests = run(
        names,
        Response(results=[*found(*names[:990]), *[NO_ROOM] * 10]),
        Response(results=found(*names[990:])),
    )
    assert answers == names
    assert [asked(request) for request in requests] == [names[:1000], names[990:]]


def test_large_users_are_asked_for_alone() -> None:
    single = v1.ResolveIdentityResponse(user=v1.User(display_name="b"))
    answers, requests = run(
        ["a", "b", "c"], Response(results=[*found("a"), TOO_LARGE, *found("c")]), single
    )
    assert answers == ["a", "b", "c"]
    assert asked(requests[1]) == ["b"]
    answers, _ = run(["a"], Response(results=[TOO_LARGE]), Fault("RESOURCE_EXHAUSTED"))
    assert answers == ["RESOURCE_EXHAUSTED"]


def test_a_batch_without_any_answer_ends() -> None:
    single = v1.ResolveIdentityResponse(user=v1.User(display_name="a"))
    answers, requests = run(
        ["a", "b"], Response(results=[NO_ROOM, NO_ROOM]), single, Response(results=found("b"))
    )
    assert answers == ["a", "b"]
    assert [asked(request) for request in requests] == [["a", "b"], ["a"], ["b"]]


@pytest.mark.parametrize(
    "fault",
    [
        Fault("PERMISSION_DENIED", "TENANT_DENIED"),
        Fault("UNAUTHENTICATED", "CREDENTIAL_INVALID"),
        Fault("DEADLINE_EXCEEDED"),
    ],
)
def test_an_error_that_all_batches_would_have_is_that_of_the_rest(fault: Fault) -> None:
    names = [f"user{n}" for n in range(2500)]
    answers, requests = run(names, Response(results=found(*names[:1000])), fault)
    assert answers[:1000] == names[:1000]
    assert len(set(answers[1000:])) == 1
    assert len(requests) == 2


def test_an_error_of_one_batch_is_that_of_its_items() -> None:
    names = [f"user{n}" for n in range(2500)]
    answers, requests = run(
        names,
        Response(results=found(*names[:1000])),
        Fault("INTERNAL", "INTERNAL"),
        Response(results=found(*names[2000:])),
    )
    assert answers == names[:1000] + ["INTERNAL"] * 1000 + names[2000:]
    assert len(requests) == 3


def test_items_that_were_refused_go_with_a_further_batch() -> None:
    busy = Result(error=Fault("RESOURCE_EXHAUSTED", "RATE_LIMITED", delay=0.3).status)
    down = Result(error=Fault("UNAVAILABLE", "STORE_UNAVAILABLE").status)
    steps = resolve_many(Rules(), LookUp(tenant="eu"), [handle(name) for name in "abc"], None)
    answers, requests, delays = perform(
        steps,
        Response(results=[busy, *found("b"), down]),
        Response(results=[*found("a"), down]),
        Response(results=[down]),
    )
    assert [read(answer) for answer in answers] == ["a", "b", "STORE_UNAVAILABLE"]
    assert [asked(request) for request in requests] == [["a", "b", "c"], ["a", "c"], ["c"]]
    assert len(delays) == 2
    assert delays[0] >= 0.3


def test_a_limit_of_the_server_is_kept() -> None:
    rules = Rules()
    fault = Fault("INVALID_ARGUMENT", "BATCH_TOO_LARGE", limit="400", value="1000")
    identifiers = [handle(f"user{n}") for n in range(500)]
    for outcomes in ([fault], []):
        results = [Response(results=found(*"a" * size)) for size in (400, 100)]
        steps = resolve_many(rules, LookUp(), identifiers, None)
        _, requests, _ = perform(steps, *outcomes, *results)
        assert len(requests) == len(outcomes) + 2


def test_a_server_may_accept_fewer_items() -> None:
    limit = Fault("INVALID_ARGUMENT", "BATCH_TOO_LARGE", limit="2", value="3")
    answers, requests = run(
        ["a", "b", "c"], limit, Response(results=found("a", "b")), Response(results=found("c"))
    )
    assert answers == ["a", "b", "c"]
    assert [len(asked(request)) for request in requests] == [3, 2, 1]


def test_a_batch_has_a_bound_in_bytes() -> None:
    names = [f"{n}" * 300_000 for n in range(5)]
    results = [Response(results=found(*names[start : start + 3])) for start in (0, 3)]
    answers, requests = run(names, *results)
    assert answers == names
    assert all(request.ByteSize() <= BATCH_BYTES for request in requests)


def test_a_response_with_too_few_results_is_an_error() -> None:
    answers, _ = run(["a", "b"], Response(results=found("a")))
    assert answers == ["INTERNAL", "INTERNAL"]


def test_nothing_is_sent_again_after_a_hopeless_error() -> None:
    busy = Result(error=Fault("RESOURCE_EXHAUSTED", "RATE_LIMITED", delay=0.01).status)
    names = [f"user{n}" for n in range(1002)]
    unreachable = Fault("UNAVAILABLE", text="failed to connect to all addresses")
    denied = Fault("UNAUTHENTICATED", "CREDENTIAL_INVALID")
    for fault, text in ((denied, "CREDENTIAL_INVALID"), (unreachable, "UNAVAILABLE")):
        rules = Rules(wait_for_ready=False)
        steps = resolve_many(rules, LookUp(tenant="eu"), [handle(name) for name in names], None)
        first = Response(results=[busy, *found(*names[1:1000])])
        answers, requests, _ = perform(steps, first, fault)
        assert len(requests) == 2
        assert [read(answers[n]) for n in (0, 1, 1001)] == [text, "user1", text]


def test_an_item_has_three_attempts_in_all_rounds_together() -> None:
    down = Result(error=Fault("UNAVAILABLE", "STORE_UNAVAILABLE").status)
    lost = Fault("UNAVAILABLE")
    steps = resolve_many(Rules(), LookUp(tenant="eu"), [handle("a")], None)
    answers, requests, _ = perform(steps, lost, lost, Response(results=[down]))
    assert read(answers[0]) == "STORE_UNAVAILABLE"
    assert len(requests) == 3
