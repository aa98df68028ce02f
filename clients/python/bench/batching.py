"""Measures look-ups of many tasks at the same time, with and without batching.

POLYNYM_BIN=target/release/polynym python clients/python/bench/batching.py
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import time

from polynym import AsyncClient, email
from polynym.testing import serve
from polynym.v1 import CreateUserRequest, Identifier, Identity, User

USERS = 2000


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


async def measure(client: AsyncClient, callers: int, seconds: float) -> tuple[float, float, float]:
    """Returns the look-ups a second, and the median and 99th percentile of their times in ms."""
    times: list[float] = []
    end = time.perf_counter() + seconds

    async def call() -> None:
        while (start := time.perf_counter()) < end:
            await client.resolve(address(random.randrange(USERS)))
            times.append(time.perf_counter() - start)

    start = time.perf_counter()
    await asyncio.gather(*(call() for _ in range(callers)))
    rate = len(times) / (time.perf_counter() - start)
    percentiles = statistics.quantiles(times, n=100)
    return rate, percentiles[49] * 1000, percentiles[98] * 1000


async def compare(server: str, callers: int, seconds: float, rounds: int) -> None:
    """Measures both in turn."""
    async with AsyncClient(server, timeout=10) as client:
        await load(client)
    print("batching  look-ups/s  median ms   p99 ms")
    rates: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(rounds):
        for batching in (False, True):
            async with AsyncClient(server, batching=batching, timeout=10) as client:
                rate, median, p99 = await measure(client, callers, seconds)
            rates[batching].append(rate)
            print(f"{'on' if batching else 'off':8}  {rate:10.0f}  {median:9.1f}  {p99:7.1f}")
    ratio = statistics.median(rates[True]) / statistics.median(rates[False])
    print(f"{ratio:.1f} times as many with batching")


def main() -> None:
    """Runs the measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--callers", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with serve() as server:
        asyncio.run(compare(server.address, options.callers, options.seconds, options.rounds))


main()
