"""Looks many names up at the same time: the look-ups share a few calls."""

import asyncio

from polynym import AsyncClient, email


async def main() -> None:
    """Counts the names that have an owner."""
    async with AsyncClient() as client:
        look_ups = [client.resolve(email(f"user{n}@example.com")) for n in range(1000)]
        answers = await asyncio.gather(*look_ups, return_exceptions=True)
        print(sum(not isinstance(answer, Exception) for answer in answers), "have an owner")


asyncio.run(main())
