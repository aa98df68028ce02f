"""Both clients run the scenarios that all clients share, with faults between client and server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from async_puppet import AsyncPuppet
from steps import Step
from sync_puppet import SyncPuppet

ROOT = Path(__file__).resolve().parents[3]


def find_testbed() -> str:
    """Returns the program that runs the scenarios."""
    built = [ROOT / "target" / kind / "client-testbed" for kind in ("debug", "release")]
    found = [str(path) for path in built if path.is_file()]
    testbed = os.environ.get("POLYNYM_TESTBED") or next(iter(found), None)
    if testbed is None:
        pytest.fail("no client-testbed: run `cargo build -p client-testbed`")
    return testbed


def run_scenarios(take: Callable[[Step], Step], *flags: str) -> None:
    """Performs the steps that the testbed prints. All scenarios must pass."""
    with tempfile.TemporaryFile("w+") as log:
        testbed = subprocess.Popen(
            [find_testbed(), *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        with testbed:
            answer_steps(testbed, take)
        log.seek(0)
        report = log.read()
    print(report)
    assert testbed.returncode == 0, report
    assert re.search(r"^[1-9]\d* scenarios passed", report, re.MULTILINE), report


def answer_steps(testbed: subprocess.Popen[str], take: Callable[[Step], Step]) -> None:
    """Answers each step, until there are no more."""
    assert testbed.stdin
    assert testbed.stdout
    try:
        for line in testbed.stdout:
            testbed.stdin.write(json.dumps(take(json.loads(line))) + "\n")
            testbed.stdin.flush()
    except BaseException:
        testbed.kill()
        raise


def test_the_client_for_threads() -> None:
    puppet = SyncPuppet()
    try:
        run_scenarios(puppet.take)
    finally:
        puppet.close()


def test_the_client_for_asyncio() -> None:
    loop = asyncio.new_event_loop()
    puppet = AsyncPuppet()
    try:
        run_scenarios(lambda step: loop.run_until_complete(puppet.take(step)))
    finally:
        loop.run_until_complete(puppet.close())
        loop.close()
