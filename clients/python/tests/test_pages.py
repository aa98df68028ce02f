"""Every list over pages has an iterator."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from polynym import AsyncClient, Client, email, handle, v1
from polynym.testing import Server
from polynym.v1 import stubs

Create = Callable[..., v1.User]


def test_every_list_has_an_iterator() -> None:
    services = [kind for name, kind in vars(stubs).items() if name.endswith("Service")]
    found = set()
    for service in services:
        for name in list(vars(service)):
            response = getattr(v1, f"{name}Response", None)
            if response and "next_page_token" in response.DESCRIPTOR.fields_by_name:
                iterator = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
                assert hasattr(service, iterator), iterator
                found.add(iterator)
    assert len(found) == 9


def test_an_iterator_has_the_items_of_all_pages(client: Client, create: Create) -> None:
    joe = create(handle("joe"))
    for n in range(4):
        create(email(f"user{n}@example.com"))
        recipients = [v1.Recipient(user_id=joe.user_id)]
        notice = v1.NoticeContent(subject=f"Notice {n}")
        client.inbox.SendNotice(v1.SendNoticeRequest(recipients=recipients, notice=notice))
    request = v1.ListNoticesRequest(user_id=joe.user_id, page_size=3)
    assert len(list(client.inbox.list_notices(request))) == 4
    assert request.page_token == ""
    events = client.directory.list_events(v1.ListEventsRequest(page_size=2))
    assert len(list(events)) == 5
    assert len(list(client.directory.search_users(v1.SearchUsersRequest(page_size=2)))) == 5
    text = "user0@example.com, user1@example.com, nobody@example.com"
    found = client.directory.find_users(v1.FindUsersRequest(text=text, page_size=1))
    assert [match.reasons[0].value[:11] for match in found] == ["email:user0", "email:user1"]
    tenants = [tenant.tenant for tenant in client.admin.list_tenants(v1.ListTenantsRequest())]
    assert len(tenants) == 1
    assert len(list(client.admin.list_tenant_history(v1.ListTenantHistoryRequest()))) == 1
    assert list(client.admin.list_attribute_names(v1.ListAttributeNamesRequest())) == []
    assert list(client.registry.list_bulk_changes(v1.ListBulkChangesRequest())) == []


def test_an_iterator_of_tasks(polynym_server: Server, tenant: str, create: Create) -> None:
    for n in range(3):
        create(email(f"user{n}@example.com"))

    async def main() -> None:
        async with AsyncClient(polynym_server.address, tenant=tenant, timeout=60) as client:
            request = v1.SearchUsersRequest(page_size=2)
            found = [user async for user in client.directory.search_users(request)]
            assert len(found) == 3

    asyncio.run(main())
