"""Look-ups of identifiers: their options, and batches of any number."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Literal, cast

from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from polynym import v1
from polynym._rules import Rules, Steps
from polynym.errors import PolynymError, from_status
from polynym.v1.stubs import BATCH_RESOLVE_IDENTITIES, RESOLVE_IDENTITY

BATCH_ITEMS = 1000
BATCH_BYTES = 900 * 1024
ITEM_OVERHEAD = 8
"""The maximum bytes of an item of a batch beyond its identifier: tag and length."""
ITEM = re.compile(r"^identifiers\[\d+\]")
"""How a batch names an item."""

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


def timestamp(value: datetime) -> Timestamp:
    """Returns a time as a message. A time without a zone is refused: it could mean several."""
    if value.tzinfo is None:
        raise ValueError("a time needs a time zone, such as datetime.timezone.utc")
    message = Timestamp()
    message.FromDatetime(value.astimezone(timezone.utc))
    return message


def answer(result: v1.BatchResolveIdentitiesResponse.Result) -> Answer:
    """Returns the answer that a single look-up would have got."""
    if result.HasField("error"):
        error = from_status(result.error)
        field, message = (ITEM.sub("identifier", text) for text in (error.field, error.message))
        return error.copy(field=field, message=message)
    found = result.found
    return v1.ResolveIdentityResponse(user=found.user, identity=found.identity)


def size_in_batch(identifier: v1.Identifier) -> int:
    """Returns the bytes, at most, that an identifier takes in a batch."""
    return identifier.ByteSize() + ITEM_OVERHEAD


def too_large_limit(error: PolynymError, sent: int) -> int | None:
    """Returns how many items a server accepts, if it rejected a batch because it had more."""
    limit = error.metadata.get("limit", "") if error.reason == "BATCH_TOO_LARGE" else ""
    return int(limit) if limit.isdecimal() and 0 < int(limit) < sent else None


def resolve_many(
    rules: Rules,
    options: LookUp,
    identifiers: Sequence[v1.Identifier],
    timeout: float | None,
) -> Steps[list[Answer]]:
    """Looks any number of identifiers up, in batches one after another."""
    answers: dict[int, Answer] = {}
    pending = deque(range(len(identifiers)))
    most = BATCH_ITEMS

    while pending:
        batch = take_batch(pending, identifiers, most)
        request = options.batch(identifiers[i] for i in batch)
        try:
            response = yield from rules.call(
                BATCH_RESOLVE_IDENTITIES, request, rules.deadline(timeout)
            )
        except PolynymError as error:
            limit = too_large_limit(error, len(batch))
            if limit is None:
                # The remaining ones would fail with the same error: they are not sent.
                answers.update(dict.fromkeys([*batch, *pending], error))
                break
            most = limit
            pending.extendleft(reversed(batch))
            continue

        answers.update(zip(batch, map(answer, response.results), strict=True))
        unanswered = [i for i in batch if has_reason(answers[i], "ANSWER_TOO_LARGE")]
        alone = [i for i in batch if has_reason(answers[i], "USER_TOO_LARGE")]
        if unanswered and unanswered[0] == batch[0]:
            # A batch that answers nothing is not sent again.
            alone.append(unanswered.pop(0))
        for i in alone:
            request_one = options.single(identifiers[i])
            answers[i] = yield from resolve_one(rules, request_one, timeout)
        pending.extendleft(reversed(unanswered))

    return [answers[i] for i in range(len(identifiers))]


def take_batch(pending: deque[int], identifiers: Sequence[v1.Identifier], most: int) -> list[int]:
    """Removes the items of the next batch, at least one, from those that are pending."""
    batch = [pending.popleft()]
    size = size_in_batch(identifiers[batch[0]])
    while pending and len(batch) < most:
        size += size_in_batch(identifiers[pending[0]])
        if size > BATCH_BYTES:
            break
        batch.append(pending.popleft())
    return batch


def has_reason(given: Answer, reason: str) -> bool:
    """Returns whether an answer is an error with a reason."""
    return isinstance(given, PolynymError) and given.reason == reason


def resolve_one(
    rules: Rules, request: v1.ResolveIdentityRequest, timeout: float | None
) -> Steps[Answer]:
    """Looks one identifier up, and returns its error instead of raising it."""
    try:
        return (yield from rules.call(RESOLVE_IDENTITY, request, rules.deadline(timeout)))
    except PolynymError as error:
        return error
