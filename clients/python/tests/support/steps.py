"""Steps of the scenarios, as JSON, and their answers."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import timezone
from typing import Any, TypeVar

from google.protobuf.message import Message

import polynym
from polynym import PolynymError, v1

LOOPS = 8
MOST_ERRORS = 20

Step = dict[str, Any]
Options = dict[str, Any]
Parsed = TypeVar("Parsed", bound=Message)


def parse(kind: type[Parsed], text: str) -> Parsed:
    """Returns the message of a step."""
    return kind.FromString(b64decode(text))


def ok(message: Message) -> Step:
    """Returns the answer with a message."""
    return {"ok": b64encode(message.SerializeToString()).decode()}


def failed(error: PolynymError) -> Step:
    """Returns the answer with an error."""
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).upper()
    found: Step = {"type": kind, "code": error.code, "reason": error.reason}
    if error.field:
        found["field"] = error.field
    if error.retry_after is not None:
        found["retry_after_ms"] = error.retry_after * 1000
    if error.owner:
        found["owner"] = error.owner
    if error.request_id:
        found["request_id"] = error.request_id
    return {"error": found}


def outcome(answer: Message | BaseException) -> Step:
    """Returns the answer with a message or an error. Other exceptions fail the test."""
    if isinstance(answer, PolynymError):
        return failed(answer)
    if isinstance(answer, BaseException):
        raise answer
    return ok(answer)


def found(answer: polynym.Answer) -> Step:
    """Returns the answer of an item of a batch."""
    if isinstance(answer, PolynymError):
        return failed(answer)
    # The fields have the same numbers.
    return ok(v1.BatchResolveIdentitiesResponse.Found(user=answer.user, identity=answer.identity))


def got(found: polynym.Found) -> Step:
    """Returns the answer with a user that was got or created."""
    return {**ok(found.user), "created": found.created}


class Kept:
    """What the loops of look-ups have seen."""

    def __init__(self) -> None:
        self.is_over = False
        self._answers = 0
        self._errors: list[Step] = []

    def count(self, answer: Step) -> None:
        """Counts an answer, or keeps its error."""
        if "error" in answer:
            self._errors.append(answer["error"])
        else:
            self._answers += 1

    def answer(self) -> Step:
        """Returns the answer with all of it."""
        return {"answers": self._answers, "errors": self._errors[:MOST_ERRORS]}


def seconds(step: Step) -> float | None:
    """Returns the timeout of a step."""
    return to_seconds(step.get("timeout_ms"))


def to_seconds(milliseconds: float | None) -> float | None:
    """Returns a time in seconds."""
    return None if milliseconds is None else milliseconds / 1000


def connection(step: Step) -> Options:
    """Returns the arguments of a client."""
    return {
        "server": step["server"],
        "token": step.get("token"),
        "tenant": step.get("tenant") or "",
        "timeout": seconds(step) or 2.0,
        "batching": step.get("batching", True),
    }


def options(request: v1.ResolveIdentityRequest | v1.BatchResolveIdentitiesRequest) -> Options:
    """Returns the arguments of a look-up."""
    has = request.HasField
    level = v1.Consistency.Name(request.consistency).removeprefix("CONSISTENCY_").lower()
    staleness = request.max_staleness.ToTimedelta() if has("max_staleness") else None
    return {
        "tenant": request.tenant,
        "consistency": None if level == "unspecified" else level,
        "max_staleness": staleness,
        "show_disabled": request.show_disabled,
        "fields": list(request.read_mask.paths) if has("read_mask") else None,
        "as_of": request.as_of.ToDatetime(timezone.utc) if has("as_of") else None,
    }


def search_options(request: v1.SearchUsersRequest) -> Options:
    """Returns the arguments of a search."""
    has_mask = request.HasField("read_mask")
    return {
        "filter": request.filter,
        "order_by": request.order_by,
        "tenant": request.tenant,
        "fields": list(request.read_mask.paths) if has_mask else None,
        "page_size": request.page_size,
    }


def history_options(request: v1.ListHistoryRequest) -> Options:
    """Returns the arguments of a history."""
    by_id = request.WhichOneof("user") == "user_id"
    times = {"start": "from", "end": "to"}
    return {
        "user": request.user_id if by_id else request.identifier,
        "types": list(request.types),
        "tenant": request.tenant,
        "page_size": request.page_size,
        **{
            name: getattr(request, field).ToDatetime(timezone.utc)
            for name, field in times.items()
            if request.HasField(field)
        },
    }


def watch_options(request: v1.WatchRequest) -> Options:
    """Returns the arguments of a watch."""
    return {
        "resume_token": request.resume_token,
        "user_ids": list(request.user_ids),
        "types": list(request.types),
        "tenant": request.tenant,
    }


def method_of(client: Any, step: Step) -> tuple[Callable[..., Any], Message]:
    """Returns the method that a step names, and its request."""
    service = getattr(client, step["service"].removesuffix("Service").lower())
    request: Message = parse(getattr(v1, f"{step['method']}Request"), step["request"])
    return getattr(service, step["method"]), request
