"""Measures look-ups of many tasks or threads at the same time, with and without batching.

POLYNYM_BIN=target/dist/polynym python clients/python/bench/batching.py [--threads]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import threading
import time

from polynym import AsyncClient, Client, email
from polynym.testing import serve
from polynym.v1 import CreateUserRequest, Identifier, Identity, User

USERS = 2000
Measured = tuple[float, float, float]


async def load(client: AsyncClient) -> None:
    """Creates the users to look up."""

    async def create(n: int) -> None:
        user = User(display_name=f"User {n}", identities=[Identity(identifier=address(n))])
        await client.registry.CreateUser(CreateUserRequest(user=user))

    for start in range(0, USERS, 64):
        await asyncio.gather(*map(create, range(start, min(start + 64, USERS))))


def address(n: int) -> Identifier:
    """Returns the name of a user."""
    return email(f"user{n}@example.com")


def summary(times: list[float], seconds: float) -> Measured:
    """Returns the look-ups a second, and the median and 99th percentile of their times in ms."""
    percentiles = statistics.quantiles(times, n=100)
    return len(times) / seconds, percentiles[49] * 1000, percentiles[98] * 1000


async def measure(client: AsyncClient, callers: int, seconds: float) -> Measured:
    """Returns the look-ups a second, and the median and 99th percentile of their times in ms."""
    times: list[float] = []
    end = time.perf_counter() + seconds

    async def call() -> None:
        while (start := time.perf_counter()) < end:
            await client.resolve(address(random.randrange(USERS)))
            times.append(time.perf_counter() - start)

    start = time.perf_counter()
    await asyncio.gather(*(call() for _ in range(callers)))
    return summary(times, time.perf_counter() - start)


def measure_threads(client: Client, callers: int, seconds: float) -> Measured:
    """Returns the same of threads."""
    times: list[float] = []
    end = time.perf_counter() + seconds

    def call() -> None:
        while (start := time.perf_counter()) < end:
            client.resolve(address(random.randrange(USERS)))
            times.append(time.perf_counter() - start)

    threads = [threading.Thread(target=call) for _ in range(callers)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return summary(times, time.perf_counter() - start)


async def run_tasks(options: argparse.Namespace, server: str, batching: bool) -> Measured:
    """Measures tasks."""
    async with AsyncClient(server, batching=batching, timeout=10) as client:
        return await measure(client, options.callers, options.seconds)


def run_once(options: argparse.Namespace, server: str, batching: bool) -> Measured:
    """Measures tasks or threads."""
    if not options.threads:
        return asyncio.run(run_tasks(options, server, batching))
    with Client(server, batching=batching, timeout=10) as client:
        return measure_threads(client, options.callers, options.seconds)


async def prepare(server: str) -> None:
    """Creates the users to look up."""
    async with AsyncClient(server, timeout=10) as client:
        await load(client)


def compare(options: argparse.Namespace, server: str) -> None:
    """Measures both in turn."""
    asyncio.run(prepare(server))
    print("batching  look-ups/s  median ms   p99 ms")
    rates: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(options.rounds):
        for batching in (False, True):
            rate, median, p99 = run_once(options, server, batching)
            rates[batching].append(rate)
            print(f"{'on' if batching else 'off':8}  {rate:10.0f}  {median:9.1f}  {p99:7.1f}")
    ratio = statistics.median(rates[True]) / statistics.median(rates[False])
    print(f"{ratio:.1f} times as many with batching")


def main() -> None:
    """Runs the measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--callers", type=int, default=256)
    parser.add_argument("--threads", action="store_true", help="threads, not tasks")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with serve() as server:
        compare(options, server.address)


main()
