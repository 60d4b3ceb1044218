"""How controllers look again and again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Never


async def at_intervals(seconds: float, look: Callable[[], Awaitable[None]]) -> Never:
    """Looks each time so many seconds have passed since the last look has ended. Goes on until cancelled."""
    while True:
        await asyncio.sleep(seconds)
        await look()


async def at_intervals_with_group(seconds: float, look: Callable[[asyncio.TaskGroup], Awaitable[None]]) -> Never:
    """Looks at once, and then as ``at_intervals`` does. What a look begins in the group goes on beside later looks."""
    async with asyncio.TaskGroup() as group:
        while True:
            await look(group)
            await asyncio.sleep(seconds)
