"""The example with a web framework, against a real server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from polynym.testing import serve

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
pytest.importorskip("fastapi", reason="FastAPI is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")


@pytest.fixture
def service() -> Iterator[str]:
    """The address of the service."""
    with serve() as server, socket.create_server(("127.0.0.1", 0)) as listener:
        os.set_inheritable(listener.fileno(), True)
        command = [sys.executable, "-m", "uvicorn", "sign_up:app", "--log-level", "info"]
        process = subprocess.Popen(
            [*command, "--fd", str(listener.fileno())],
            cwd=EXAMPLES,
            env={**os.environ, "POLYNYM_SERVER": server.address},
            pass_fds=[listener.fileno()],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            process.terminate()
            process.wait()


def call(url: str, body: dict[str, str] | None = None) -> tuple[int, Any]:
    """Returns the status and the answer of a route."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_signing_up_and_looking_up(service: str) -> None:
    ann = {"address": "Ann@Example.com", "name": "Ann"}
    status, created = call(f"{service}/users", ann)
    assert (status, created["name"]) == (201, "Ann")
    assert call(f"{service}/users", ann) == (200, created)
    assert call(f"{service}/users/ann@EXAMPLE.com") == (200, created)
    status, error = call(f"{service}/users/nobody@example.com")
    assert (status, error["reason"]) == (404, "IDENTITY_NOT_FOUND")
    status, error = call(f"{service}/users", {"address": "no-address", "name": "Ann"})
    assert (status, error["reason"]) == (400, "IDENTIFIER_INVALID")
