"""Methods of the API, and what calls them."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from google.protobuf.message import Message

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)

Metadata = Sequence[tuple[str, str | bytes]]
"""Headers of a call, such as `polynym-reason`."""


class Method(Generic[Request, Response]):
    """A method of a service."""

    __slots__ = ("has_request_id", "has_tenant", "path", "reads", "request", "response")

    def __init__(
        self, path: str, request: type[Request], response: type[Response], *, reads: bool
    ) -> None:
        self.path = path
        self.request = request
        self.response = response
        self.reads = reads
        """Whether the method changes nothing."""
        fields = request.DESCRIPTOR.fields_by_name
        self.has_tenant = "tenant" in fields
        self.has_request_id = "request_id" in fields

    @property
    def is_repeatable(self) -> bool:
        """Whether a call whose outcome is unknown can be sent again."""
        return self.reads or self.has_request_id

    def prepare(self, request: Request, tenant: str) -> Request:
        """Returns the request with its default tenant and a request id. Copies it if it changes."""
        tenant = tenant if self.has_tenant and not get_text(request, "tenant") else ""
        new_id = self.has_request_id and not get_text(request, "request_id")
        if not tenant and not new_id:
            return request

        copy = self.request()
        copy.CopyFrom(request)
        if tenant:
            copy.tenant = tenant  # type: ignore[attr-defined]
        if new_id:
            copy.request_id = str(uuid.uuid4())  # type: ignore[attr-defined]
        return copy


def get_text(message: Message, field: str) -> str:
    """Returns the text in a field, or an empty text if the message has no such field."""
    return str(getattr(message, field, ""))


class Caller(Protocol):
    """Calls methods, and blocks until they return."""

    def unary(
        self,
        method: Method[Request, Response],
        request: Request,
        timeout: float | None,
        metadata: Metadata,
    ) -> Response:
        """Calls a method with one response."""

    def unary_stream(
        self,
        method: Method[Request, Response],
        request: Request,
        timeout: float | None,
        metadata: Metadata,
    ) -> Iterator[Response]:
        """Calls a method with several responses."""

    def stream_stream(
        self,
        method: Method[Request, Response],
        requests: Iterable[Request],
        timeout: float | None,
        metadata: Metadata,
    ) -> Iterator[Response]:
        """Calls a method with several requests and responses."""


class AsyncCaller(Protocol):
    """Calls methods in an event loop."""

    async def unary(
        self,
        method: Method[Request, Response],
        request: Request,
        timeout: float | None,
        metadata: Metadata,
    ) -> Response:
        """Calls a method with one response."""

    def unary_stream(
        self,
        method: Method[Request, Response],
        request: Request,
        timeout: float | None,
        metadata: Metadata,
    ) -> AsyncIterator[Response]:
        """Calls a method with several responses."""

    def stream_stream(
        self,
        method: Method[Request, Response],
        requests: Iterable[Request] | AsyncIterable[Request],
        timeout: float | None,
        metadata: Metadata,
    ) -> AsyncIterator[Response]:
        """Calls a method with several requests and responses."""
