"""The progress of a watch over lost connections."""

from __future__ import annotations

from scripted import Fault

from polynym import v1
from polynym._rules import Rules
from polynym._watch import ENDED, RECENT, Progress
from polynym.errors import from_rpc_error, unreachable

LOST = from_rpc_error(Fault("INTERNAL"))


def event(n: int) -> v1.WatchResponse:
    """Returns the response with an event."""
    return v1.WatchResponse(event=v1.Event(event_id=f"user:{n}"), resume_token=f"token{n}")


def beat(token: str) -> v1.WatchResponse:
    """Returns a heartbeat."""
    return v1.WatchResponse(heartbeat=v1.Heartbeat(), resume_token=token)


def begun() -> Progress:
    """Returns a watch that has begun."""
    progress = Progress(v1.WatchRequest(tenant="eu", user_ids=["joe"]), Rules())
    assert progress.request().resume_token == ""
    assert progress.accept(beat("begin")) is None
    return progress


def test_a_watch_resumes_after_the_last_response() -> None:
    progress = begun()
    delivered = progress.accept(event(1))
    assert delivered
    assert (delivered.event.event_id, delivered.resume_token) == ("user:1", "token1")
    progress.accept(beat("later"))
    assert progress.delay(LOST) is not None
    expected = v1.WatchRequest(tenant="eu", user_ids=["joe"], resume_token="later")
    assert progress.request() == expected
    assert progress.resume_token == "later"


def test_a_repeated_event_is_dropped() -> None:
    progress = begun()
    assert progress.accept(event(1))
    assert progress.accept(event(2))
    progress.delay(LOST)
    progress.request()
    assert progress.accept(event(1)) is None
    assert progress.accept(event(2)) is None
    assert progress.accept(event(3))
    for n in range(4, RECENT + 10):
        assert progress.accept(event(n))
    assert progress.accept(event(1)), "only the latest are remembered"


def test_a_watch_that_has_begun_goes_on_for_ever() -> None:
    progress = begun()
    for n in range(1, 100):
        delay = progress.delay(LOST if n % 2 else ENDED)
        assert delay is not None
        assert delay <= min(0.1 * 2**n, 5)
    assert progress.delay(from_rpc_error(Fault("OUT_OF_RANGE", "RESUME_EXPIRED"))) is None
    delay = progress.delay(from_rpc_error(Fault("RESOURCE_EXHAUSTED", "OVERLOADED", delay=7)))
    assert delay is not None
    assert 7 <= delay <= 8.4


def test_a_watch_that_cannot_begin_fails_like_a_call() -> None:
    progress = Progress(v1.WatchRequest(), Rules(retries=2))
    assert progress.delay(LOST) is not None
    assert progress.delay(LOST) is not None
    assert progress.delay(LOST) is None


def test_a_server_that_ends_a_watch_is_asked_again_at_once() -> None:
    progress = begun()
    ended = from_rpc_error(Fault("UNAVAILABLE", "WATCH_ENDED"))
    assert progress.delay(ended) == 0
    progress.request()
    assert progress.delay(ended) != 0, "it never answered"


def test_a_watch_that_waits_for_a_server_has_all_its_attempts() -> None:
    progress = Progress(v1.WatchRequest(), Rules(retries=2))
    for _ in range(3):
        assert progress.delay(unreachable(["a:1"])) is not None
    assert progress.delay(LOST) is not None
    assert progress.delay(LOST) is not None
    assert progress.delay(LOST) is None
