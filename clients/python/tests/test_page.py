"""The examples of the page, and OpenTelemetry."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from opentelemetry import trace
from opentelemetry.instrumentation.grpc import (
    GrpcAioInstrumentorClient,
    GrpcInstrumentorClient,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from polynym import AsyncClient, Client, NotFound, handle
from polynym.testing import Server, serve

FOLDER = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("name", "output"),
    [("ten_lines", "Joe\nIDENTITY_NOT_FOUND\n"), ("ten_lines_async", "0 have an owner\n")],
)
def test_the_ten_lines_run(name: str, output: str) -> None:
    file = FOLDER / "examples" / f"{name}.py"
    code = file.read_text().split('"""\n\n', 1)[1]
    assert f"```python\n{code}```" in (FOLDER / "README.md").read_text()
    with serve() as server:
        environment = {**os.environ, "POLYNYM_SERVER": server.address}
        run = subprocess.run(
            [sys.executable, file], env=environment, capture_output=True, text=True, timeout=60
        )
    assert (run.stdout, run.stderr) == (output, "")


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """The spans of the calls of clients that are made from now on."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    instrumentors: list[Any] = [GrpcInstrumentorClient(), GrpcAioInstrumentorClient()]
    for instrumentor in instrumentors:
        instrumentor.instrument()
    yield exporter
    for instrumentor in instrumentors:
        instrumentor.uninstrument()


def test_calls_are_spans(polynym_server: Server, spans: InMemorySpanExporter) -> None:
    with Client(polynym_server.address) as client:
        with pytest.raises(NotFound):
            client.resolve(handle("joe"))
        with client.watch():
            pass

    async def main() -> None:
        async with AsyncClient(polynym_server.address) as client:
            with pytest.raises(NotFound):
                await client.resolve(handle("joe"))
            async with client.watch():
                pass

    asyncio.run(main())
    names = [span.name for span in spans.get_finished_spans()]
    assert names.count("/polynym.v1.DirectoryService/ResolveIdentity") == 2


class CountCalls(grpc.UnaryUnaryClientInterceptor):
    """Counts calls."""

    def __init__(self) -> None:
        self.count = 0

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        """Counts a call."""
        self.count += 1
        return continuation(details, request)


class CountAsyncCalls(grpc.aio.UnaryUnaryClientInterceptor):
    """Counts calls."""

    def __init__(self) -> None:
        self.count = 0

    async def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        """Counts a call."""
        self.count += 1
        return await continuation(details, request)


def test_interceptors_see_each_call(polynym_server: Server) -> None:
    count, count_async = CountCalls(), CountAsyncCalls()
    with Client(polynym_server.address, interceptors=[count]) as client:
        assert list(client.search(tenant="default")) == []

    async def main() -> None:
        server = polynym_server.address
        async with AsyncClient(server, interceptors=[count_async]) as client:
            with pytest.raises(NotFound):
                await client.resolve(handle("joe"))

    asyncio.run(main())
    assert (count.count, count_async.count) == (1, 1)
