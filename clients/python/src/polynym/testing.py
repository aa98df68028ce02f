"""A server for tests: a real one, with an empty store that ends with it.

    with polynym.testing.serve() as server, polynym.Client(server.address) as client:
        ...

With pytest, the fixture `polynym_server` is such a server, shared by all tests of a run.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

START_TIMEOUT = 30.0
STOP_TIMEOUT = 10.0


@dataclass(frozen=True)
class Server:
    """A running server."""

    grpc: str
    """The address for clients, as `HOST:PORT`."""
    http: str
    """The address for HTTP and JSON, as `HOST:PORT`."""

    @property
    def address(self) -> str:
        """The address for clients, as a URL."""
        return f"http://{self.grpc}"


def find_program(program: str | None = None) -> str:
    """Returns the program: the argument, else `POLYNYM_BIN`, else `polynym` on the PATH."""
    found = program or os.environ.get("POLYNYM_BIN") or shutil.which("polynym")
    if not found:
        raise FileNotFoundError("no polynym on the PATH: install it, or set POLYNYM_BIN")
    return found


@contextmanager
def serve(program: str | None = None, arguments: Sequence[str] = ()) -> Iterator[Server]:
    """Runs a server with an empty store on free ports, and stops it at the end.

    Args:
        program: The program; by default `POLYNYM_BIN`, and then `polynym` on the PATH.
        arguments: Further arguments of `polynym serve`.
    """
    command = [find_program(program), "serve", "--ephemeral", *arguments]
    with tempfile.TemporaryFile("w+") as log:
        # The server ends when the pipe to it closes, even if this program is killed.
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        try:
            yield read_addresses(process, log)
        finally:
            stop(process)


def read_addresses(process: subprocess.Popen[str], log: IO[str]) -> Server:
    """Returns the addresses that a server prints when it is ready."""
    lines: queue.Queue[str] = queue.Queue()

    def read_line() -> None:
        if process.stdout is not None:
            lines.put(process.stdout.readline())

    threading.Thread(target=read_line, daemon=True).start()
    try:
        line = lines.get(timeout=START_TIMEOUT)
    except queue.Empty:
        raise TimeoutError(f"the server is not ready after {START_TIMEOUT:.0f} s") from None
    if not line:
        status = process.wait()
        log.seek(0)
        raise RuntimeError(f"the server ended with status {status}: {log.read()}")
    addresses = json.loads(line)
    return Server(addresses["grpc"], addresses.get("http", ""))


def stop(process: subprocess.Popen[str]) -> None:
    """Stops a server."""
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
