"""Requests of lists, page by page."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from google.protobuf.field_mask_pb2 import FieldMask

from polynym import v1
from polynym._lookups import timestamp

EventTypes = Iterable[v1.EventType | str]


class PageRequest(Protocol):
    """A request of a page."""

    page_token: str


class Page(Protocol):
    """A response with a page."""

    next_page_token: str


def advance(request: PageRequest, page: Page) -> bool:
    """Makes a request one for the next page. Returns whether there is one."""
    request.page_token = page.next_page_token
    return bool(page.next_page_token)


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
