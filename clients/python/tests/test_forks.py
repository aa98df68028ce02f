"""Processes that fork after they have used a client."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from polynym.testing import Server

PROGRAM = """
import asyncio, os, sys
from polynym import AsyncClient, Client, PolynymError, handle

def resolve(client):
    if isinstance(client, Client):
        return client.resolve(handle("joe"))
    async def main():
        return await client.resolve(handle("joe"))
    return asyncio.run(main())

def outcome(client):
    try:
        resolve(client)
    except (PolynymError, RuntimeError) as error:
        print(type(error).__name__, str(error).split(":")[0], flush=True)

kinds = {"threads": Client, "asyncio": AsyncClient}
kind, is_used, child = sys.argv[1:]
before = kinds[kind](timeout=60)
if is_used == "used":
    outcome(before)
worker = os.fork()
if worker == 0:
    outcome(before if child == "same" else kinds[child](timeout=60))
    os._exit(0)
os._exit(os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]))
"""
FOUND_NOBODY = "NotFound IDENTITY_NOT_FOUND"
MADE_BEFORE = "RuntimeError this client was made before the process forked"
USED_BEFORE = "RuntimeError a client was used before the process forked"


def run(server: Server, *arguments: str, fork_support: str = "0") -> list[str]:
    """Runs the program. Returns what the parent and the child print."""
    environment = {
        **os.environ,
        "POLYNYM_SERVER": server.address,
        "GRPC_ENABLE_FORK_SUPPORT": fork_support,
    }
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout.splitlines()


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
each = pytest.mark.parametrize("kind", ["threads", "asyncio"])


@each
def test_a_client_that_was_not_used_before_works_in_the_child(
    polynym_server: Server, kind: str
) -> None:
    assert run(polynym_server, kind, "unused", "same") == [FOUND_NOBODY]
    assert run(polynym_server, kind, "unused", kind) == [FOUND_NOBODY]


@each
def test_a_client_that_was_used_before_is_an_error_in_the_child(
    polynym_server: Server, kind: str
) -> None:
    assert run(polynym_server, kind, "used", "same") == [FOUND_NOBODY, MADE_BEFORE]
    assert run(polynym_server, kind, "used", kind) == [FOUND_NOBODY, USED_BEFORE]


def test_with_the_support_of_grpc_threads_survive_a_fork(polynym_server: Server) -> None:
    found = run(polynym_server, "threads", "used", "threads", fork_support="1")
    assert found == [FOUND_NOBODY, FOUND_NOBODY]
    found = run(polynym_server, "asyncio", "used", "threads", fork_support="1")
    assert found == [FOUND_NOBODY, USED_BEFORE]
