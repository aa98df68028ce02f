"""How look-ups that are made at the same time share calls, for threads and for tasks.

A look-up goes at once, alone, while fewer than two calls with the same options are under way.
Otherwise it waits, and goes together with the others that wait when one returns, or takes long.
A shared call makes one attempt. A look-up without an answer after half its time leaves it and
goes alone; the call goes on until all have left. One that has a call for itself stays with it.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from polynym import v1
from polynym._lookups import Answer, LookUp, answers_in, learn_limit, take_batch
from polynym._rules import Call, Rules, Steps, backoff, is_retryable
from polynym.errors import PolynymError
from polynym.v1.stubs import BATCH_RESOLVE_IDENTITIES

IN_FLIGHT = 2
"""The maximum number of calls in flight with the same options."""
STALLED_AFTER = 0.1
"""The seconds after which a call holds up no others."""
MOST_STALLED = 8
ALONE = 16
"""How many look-ups of a client, at most, go alone at a time after a shared call."""
TOO_LARGE = ("ANSWER_TOO_LARGE", "USER_TOO_LARGE")


class Caller(Protocol):
    """A caller who waits for an answer."""

    @property
    def identifier(self) -> v1.Identifier:
        """What it looks up."""

    @property
    def deadline(self) -> float:
        """When its time is over."""

    @property
    def half(self) -> float:
        """When half of its time is over."""


Waiting = TypeVar("Waiting", bound=Caller)


class Flight:
    """A call under way."""

    __slots__ = ("stalls_at",)

    def __init__(self) -> None:
        self.stalls_at = time.monotonic() + STALLED_AFTER


class Queue(Generic[Waiting]):
    """The look-ups with the same options: those that wait, and the calls under way."""

    def __init__(self) -> None:
        self.waiting: OrderedDict[Waiting, None] = OrderedDict()
        self._flights: list[Flight] = []
        self._stalled = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way."""
        return not self._flights and not self._stalled

    @property
    def stalls_at(self) -> float:
        """When a call that is under way will hold up no others any more."""
        can_stall = self._flights and self._stalled < MOST_STALLED
        return self._flights[0].stalls_at if can_stall else float("inf")

    def begin(self) -> Flight | None:
        """Begins a call, if none holds it up."""
        while self.stalls_at <= time.monotonic():
            del self._flights[0]
            self._stalled += 1
        if len(self._flights) >= IN_FLIGHT:
            return None
        flight = Flight()
        self._flights.append(flight)
        return flight

    def end(self, flight: Flight) -> None:
        """Ends a call."""
        if flight in self._flights:
            self._flights.remove(flight)
        else:
            self._stalled -= 1

    def take(self, most: int) -> list[Waiting]:
        """Removes the callers of the next call from those that wait."""
        batch = take_batch(self.waiting, lambda caller: caller.identifier, most)
        for caller in batch:
            del self.waiting[caller]
        return batch


def share(rules: Rules, options: LookUp, callers: Sequence[Caller]) -> Steps[list[Answer | None]]:
    """Looks identifiers up in one attempt. An error of the call is the answer of each.

    None: all have left.
    """
    identifiers = [caller.identifier for caller in callers]
    is_shared = len(callers) > 1
    ends = [caller.half if is_shared else caller.deadline for caller in callers]
    answers: list[Answer | None] = []
    while len(answers) < len(identifiers):
        part = identifiers[len(answers) :][: rules.most_items]
        request = options.batch(part)
        call = Call(
            rules, BATCH_RESOLVE_IDENTITIES, request, max(ends), most=1, is_shared=is_shared
        )
        try:
            response = yield from call.run()
        except PolynymError as error:
            if is_shared and error.code == "DEADLINE_EXCEEDED":
                answers.extend(None for _ in part)
            elif not learn_limit(rules, error, len(part)):
                answers.extend(error.copy() for _ in part)
        else:
            answers.extend(answers_in(response, len(part)))
    return answers


class Again(NamedTuple):
    """How a look-up goes on alone: after a delay, and after so many attempts."""

    delay: float
    made: int


def go_alone(rules: Rules, error: PolynymError | None, deadline: float) -> Again:
    """Returns how a look-up goes on after the error of a shared call; None: it has left the call.

    Raises the error if it is final.
    """
    if error is None or error.reason in TOO_LARGE:
        return Again(0.0, 0)
    if not may_repeat(rules, error):
        raise error
    delay = backoff(error, 1)
    if time.monotonic() + delay >= deadline:
        raise error
    return Again(delay, 0 if error.is_never_sent else 1)


def may_repeat(rules: Rules, error: PolynymError) -> bool:
    """Returns whether the rules of retries let a look-up go alone after an error."""
    if error.is_never_sent:
        return rules.wait_for_ready
    return is_retryable(error) and rules.retries > 0 and rules.budget.allows_retry


def check_identifier(identifier: object) -> None:
    """Raises if a caller gave something else than an identifier, which would fail a whole batch."""
    if not isinstance(identifier, v1.Identifier):
        raise TypeError(f"not an identifier: {type(identifier).__name__}")
