"""Requests of lists, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from datetime import datetime, timezone
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from polynym import v1

EventTypes = Iterable[v1.EventType | str]


def all_items(
    list_page: Callable[..., Any], request: Message, field: str, **options: Any
) -> Iterator[Any]:
    """Yields the items in a field of all pages."""
    pages = Pages(request)
    while pages.has_more:
        page = list_page(pages.request, **options)
        yield from getattr(page, field)
        pages.advance(page)


async def all_items_async(
    list_page: Callable[..., Awaitable[Any]], request: Message, field: str, **options: Any
) -> AsyncIterator[Any]:
    """Yields the items in a field of all pages."""
    pages = Pages(request)
    while pages.has_more:
        page = await list_page(pages.request, **options)
        for item in getattr(page, field):
            yield item
        pages.advance(page)


class Pages:
    """The requests of one page after another."""

    def __init__(self, request: Message) -> None:
        self.request: Any = type(request)()
        self.request.CopyFrom(request)
        self.has_more = True

    def advance(self, page: Any) -> None:
        """Goes on to the page after this one, if there is one."""
        self.request.page_token = page.next_page_token
        self.has_more = bool(page.next_page_token)


def search_request(
    filter: str,  # noqa: A002
    order_by: str,
    tenant: str,
    fields: Iterable[str] | None,
    page_size: int,
) -> v1.SearchUsersRequest:
    """Returns the request for the first page of a search."""
    mask = None if fields is None else FieldMask(paths=fields)
    return v1.SearchUsersRequest(
        filter=filter, order_by=order_by, tenant=tenant, read_mask=mask, page_size=page_size
    )


def history_request(
    user: str | v1.Identifier,
    start: datetime | None,
    end: datetime | None,
    types: EventTypes,
    tenant: str,
    page_size: int,
) -> v1.ListHistoryRequest:
    """Returns the request for the first page of a history."""
    request = v1.ListHistoryRequest(tenant=tenant, types=types, page_size=page_size)
    if isinstance(user, str):
        request.user_id = user
    else:
        request.identifier.CopyFrom(user)
    if start is not None:
        getattr(request, "from").CopyFrom(timestamp(start))
    if end is not None:
        request.to.CopyFrom(timestamp(end))
    return request


def user_request(user_id: str, tenant: str, fields: Iterable[str] | None) -> v1.GetUserRequest:
    """Returns the request for a user."""
    mask = None if fields is None else FieldMask(paths=fields)
    return v1.GetUserRequest(user_id=user_id, tenant=tenant, read_mask=mask)


def timestamp(value: datetime) -> Timestamp:
    """Returns a time as a message. A time without a zone is refused: it could mean several."""
    if value.tzinfo is None:
        raise ValueError("a time needs a time zone, such as datetime.timezone.utc")
    message = Timestamp()
    message.FromDatetime(value.astimezone(timezone.utc))
    return message
