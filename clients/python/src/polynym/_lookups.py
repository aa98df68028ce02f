"""Look-ups of identifiers: their options, and batches of any number."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, TypeVar, cast

from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask

from polynym import reasons, v1
from polynym._pages import timestamp
from polynym._rules import Call, Rules, Sleep, Steps, backoff, is_retryable
from polynym.errors import AlreadyExists, NotFound, PolynymError, from_status, make_error
from polynym.v1.stubs import BATCH_RESOLVE_IDENTITIES, CREATE_USER, RESOLVE_IDENTITY

BATCH_BYTES = 900 * 1024
ITEM_OVERHEAD = 8
"""The maximum bytes of an item of a batch beyond its identifier: tag and length."""
ITEM = re.compile(r"\bidentifiers\[\d+\]")
"""How a batch names an item."""
HOPELESS = ("UNAUTHENTICATED", "PERMISSION_DENIED", "DEADLINE_EXCEEDED", "CANCELLED")
"""The codes after which no other batch would succeed."""

Item = TypeVar("Item")

Consistency = Literal["latest", "linearizable", "eventual"]
Answer = v1.ResolveIdentityResponse | PolynymError


@dataclass(frozen=True)
class LookUp:
    """The options of a look-up. Look-ups with equal options can share a batch."""

    tenant: str = ""
    consistency: Consistency | None = None
    max_staleness: timedelta | None = None
    show_disabled: bool = False
    fields: tuple[str, ...] | None = None
    as_of: datetime | None = None

    @property
    def is_shareable(self) -> bool:
        """Whether the look-up may be sent with those of other callers."""
        return self.consistency != "linearizable" and self.as_of is None

    def single(self, identifier: v1.Identifier) -> v1.ResolveIdentityRequest:
        """Returns the request for one identifier."""
        request = v1.ResolveIdentityRequest(identifier=identifier)
        self._fill(request)
        return request

    def batch(self, identifiers: Iterable[v1.Identifier]) -> v1.BatchResolveIdentitiesRequest:
        """Returns the request for several identifiers."""
        request = v1.BatchResolveIdentitiesRequest(identifiers=identifiers)
        self._fill(request)
        return request

    def _fill(self, request: v1.ResolveIdentityRequest | v1.BatchResolveIdentitiesRequest) -> None:
        request.tenant = self.tenant
        request.show_disabled = self.show_disabled
        if self.consistency:
            value = v1.Consistency.Value(f"CONSISTENCY_{self.consistency.upper()}")
            request.consistency = cast(v1.Consistency, value)
        if self.max_staleness is not None:
            request.max_staleness.CopyFrom(duration(self.max_staleness))
        if self.fields is not None:
            request.read_mask.CopyFrom(FieldMask(paths=self.fields))
        if self.as_of is not None:
            request.as_of.CopyFrom(timestamp(self.as_of))


def look_up(
    tenant: str,
    consistency: Consistency | None,
    max_staleness: timedelta | None,
    show_disabled: bool,
    fields: Iterable[str] | None,
    as_of: datetime | None,
) -> LookUp:
    """Returns the options of a look-up."""
    mask = None if fields is None else tuple(fields)
    return LookUp(tenant, consistency, max_staleness, show_disabled, mask, as_of)


def duration(value: timedelta) -> Duration:
    """Returns a duration as a message."""
    message = Duration()
    message.FromTimedelta(value)
    return message


def answer(result: v1.BatchResolveIdentitiesResponse.Result) -> Answer:
    """Returns the answer that a single look-up would have got."""
    if result.HasField("error"):
        error = from_status(result.error)
        field, message = (ITEM.sub("identifier", text) for text in (error.field, error.message))
        return error.copy(field=field, message=message)
    found = result.found
    return v1.ResolveIdentityResponse(user=found.user, identity=found.identity)


def answers_in(response: v1.BatchResolveIdentitiesResponse, count: int) -> list[Answer]:
    """Returns the answers of a batch. If they are not as many as the items, all are an error."""
    if len(response.results) != count:
        text = "the response has not one result for each identifier"
        return [make_error("INTERNAL", text) for _ in range(count)]
    return [answer(result) for result in response.results]


def size_in_batch(identifier: v1.Identifier) -> int:
    """Returns the bytes, at most, that an identifier takes in a batch."""
    return identifier.ByteSize() + ITEM_OVERHEAD


def learn_limit(rules: Rules, error: PolynymError, sent: int) -> bool:
    """Notes how many items a server accepts, if it refused a batch because it had more."""
    limit = error.metadata.get("limit", "") if error.reason == "BATCH_TOO_LARGE" else ""
    if not limit.isdecimal() or not 0 < int(limit) < sent:
        return False
    rules.most_items = int(limit)
    return True


def take_batch(
    items: Iterable[Item], identifier: Callable[[Item], v1.Identifier], most: int
) -> list[Item]:
    """Returns the first items, at least one, as many as one batch may have."""
    batch: list[Item] = []
    size = 0
    for item in items:
        size += size_in_batch(identifier(item))
        if batch and (len(batch) >= most or size > BATCH_BYTES):
            break
        batch.append(item)
    return batch


def resolve_many(
    rules: Rules,
    options: LookUp,
    identifiers: Sequence[v1.Identifier],
    timeout: float | None,
) -> Steps[list[Answer]]:
    """Looks any number of identifiers up, in batches one after another."""
    many = Many(rules, options, identifiers, timeout)
    yield from many.run()
    return [many.answers[i] for i in range(len(identifiers))]


class Many:
    """A look-up of any number of identifiers, by their positions."""

    def __init__(
        self,
        rules: Rules,
        options: LookUp,
        identifiers: Sequence[v1.Identifier],
        timeout: float | None,
    ) -> None:
        self.answers: dict[int, Answer] = {}
        self._rules = rules
        self._options = options
        self._identifiers = identifiers
        self._timeout = timeout
        self._pending = list(range(len(identifiers)))
        self._refused: list[int] = []
        self._made = [0] * len(identifiers)

    def run(self) -> Steps[None]:
        """Sends batches, and those that the server refused again after a delay."""
        delay: float | None = 0.0
        while delay is not None:
            if delay:
                yield Sleep(delay)
            while self._pending:
                yield from self._send_batch()
            delay = self._delay()
            self._pending, self._refused = self._refused, []

    def _delay(self) -> float | None:
        """Returns the seconds until the refused ones are sent again. None: their errors stay."""
        self._refused = [i for i in self._refused if self._made[i] <= self._rules.retries]
        refused = [(self.answers[i], self._made[i]) for i in self._refused]
        delays = [backoff(given, n) for given, n in refused if isinstance(given, PolynymError)]
        if not delays or not self._rules.budget.allows_retry:
            return None
        delay = max(delays)
        limit = self._rules.timeout if self._timeout is None else self._timeout
        return delay if delay < limit else None

    def _send_batch(self) -> Steps[None]:
        batch = take_batch(self._pending, self._identifiers.__getitem__, self._rules.most_items)
        request = self._options.batch(self._identifiers[i] for i in batch)
        deadline = self._rules.deadline(self._timeout)
        made = max(self._made[i] for i in batch)
        call = Call(self._rules, BATCH_RESOLVE_IDENTITIES, request, deadline, made=made)
        try:
            response = yield from call.run()
        except PolynymError as error:
            if not learn_limit(self._rules, error, len(batch)):
                self._fail(batch, error)
            return
        del self._pending[: len(batch)]
        self.answers.update(zip(batch, answers_in(response, len(batch)), strict=True))
        for i in batch:
            is_refusal = is_refused(self.answers[i])
            self._made[i] = call.made + is_refusal
            if is_refusal:
                self._refused.append(i)
        yield from self._ask_again(batch)

    def _fail(self, batch: list[int], error: PolynymError) -> None:
        """The error is that of each item of the batch; of all others, too, if they would fail."""
        if is_hopeless(error):
            self._end(error)
            return
        self.answers.update((i, error.copy()) for i in batch)
        del self._pending[: len(batch)]

    def _end(self, error: PolynymError) -> None:
        """The error is that of all items that wait, also to be asked again."""
        self.answers.update((i, error.copy()) for i in [*self._pending, *self._refused])
        self._pending, self._refused = [], []

    def _ask_again(self, batch: list[int]) -> Steps[None]:
        """Asks for items that did not fit into the response: with the next batch, or alone."""
        unanswered = [i for i in batch if has_reason(self.answers[i], "ANSWER_TOO_LARGE")]
        alone = [i for i in batch if has_reason(self.answers[i], "USER_TOO_LARGE")]
        if unanswered and unanswered[0] == batch[0]:
            # A batch that answers nothing is not sent again.
            alone.append(unanswered.pop(0))
        self._pending[:0] = unanswered
        while alone:
            i = alone.pop(0)
            given = self.answers[i] = yield from self._ask_alone(i)
            if isinstance(given, PolynymError) and is_hopeless(given):
                self._pending += alone
                self._end(given)
                return

    def _ask_alone(self, i: int) -> Steps[Answer]:
        """Looks one identifier up, and returns its error instead of raising it."""
        request = self._options.single(self._identifiers[i])
        deadline, made = self._rules.deadline(self._timeout), self._made[i]
        try:
            return (yield from self._rules.call(RESOLVE_IDENTITY, request, deadline, made=made))
        except PolynymError as error:
            return error


def is_refused(given: Answer) -> bool:
    """Returns whether an item of a batch was refused, and may be sent again."""
    return isinstance(given, PolynymError) and is_retryable(given)


def has_reason(given: Answer, reason: str) -> bool:
    """Returns whether an answer is an error with a reason."""
    return isinstance(given, PolynymError) and given.reason == reason


def is_hopeless(error: PolynymError) -> bool:
    """Returns whether no other look-up would succeed after an error."""
    return error.code in HOPELESS or error.is_never_sent


class Found(NamedTuple):
    """A user, and whether it was created for this call."""

    user: v1.User
    created: bool


def get_or_create(
    rules: Rules, identifier: v1.Identifier, user: v1.User, tenant: str, timeout: float | None
) -> Steps[Found]:
    """Returns the owner of an identifier, or creates it."""
    deadline = rules.deadline(timeout)
    request = LookUp(tenant).single(identifier)
    try:
        found = yield from rules.call(RESOLVE_IDENTITY, request, deadline)
        return Found(found.user, False)
    except NotFound as error:
        if error.reason != reasons.IDENTITY_NOT_FOUND:
            raise
    try:
        create = v1.CreateUserRequest(tenant=tenant, user=with_identity(user, identifier))
        created = yield from rules.call(CREATE_USER, create, deadline)
        return Found(created.user, True)
    except AlreadyExists as error:
        if error.reason != reasons.IDENTITY_TAKEN:
            raise
        taken = error
    latest = LookUp(tenant, "linearizable").single(identifier)
    try:
        found = yield from rules.call(RESOLVE_IDENTITY, latest, deadline)
    except NotFound:
        # Another of its identities is taken, or the owner is deleted.
        raise taken from None
    return Found(found.user, False)


def with_identity(user: v1.User, identifier: v1.Identifier) -> v1.User:
    """Returns a copy of a user that has the identifier: as its first one, if it is new."""
    copy = v1.User()
    if all(identity.identifier != identifier for identity in user.identities):
        copy.identities.add(identifier=identifier)
    copy.MergeFrom(user)
    return copy
