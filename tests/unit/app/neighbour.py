"""Somebody else in the loop, who counts how often it is their turn."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def neighbour() -> AsyncIterator[list[None]]:
    """As long as this is open, one entry more for each turn that others leave."""
    turns: list[None] = []

    async def count() -> None:
        while True:
            turns.append(None)
            await asyncio.sleep(0)

    task = asyncio.create_task(count())
    await asyncio.sleep(0)
    turns.clear()
    try:
        yield turns
    finally:
        task.cancel()
