"""What each call carries."""

from __future__ import annotations

import asyncio

import directory
from directory import in_loop

from polynym import AsyncClient, Client, handle, v1

REASON = [("polynym-reason", "a ticket")]


def check(headers: dict[str, str | bytes], token: str) -> None:
    """Checks the headers of a call."""
    assert str(headers["user-agent"]).startswith("polynym-python/0.2.0 grpc-python")
    assert headers["authorization"] == f"Bearer {token}"
    assert headers["polynym-reason"] == "a ticket"


@in_loop
async def test_headers_and_the_default_tenant() -> None:
    async with directory.serve() as (server, _):
        server.gate.set()
        request = v1.ResolveIdentityRequest(identifier=handle("joe"))
        with Client(server.address, token="sync", tenant="eu") as client:
            call = client.directory.ResolveIdentity
            await asyncio.to_thread(call, request, metadata=REASON)
        check(server.headers, "sync")
        async with AsyncClient(server.address, token="async", tenant="eu") as other:
            await other.directory.ResolveIdentity(request, metadata=REASON)
            check(server.headers, "async")
            await asyncio.gather(*(other.resolve(handle("joe")) for _ in range(5)))
            assert server.headers["authorization"] == "Bearer async"
        assert {single.tenant for single in server.singles} == {"eu"}
        assert {batch.tenant for batch in server.batches} == {"eu"}
        assert request.tenant == ""
