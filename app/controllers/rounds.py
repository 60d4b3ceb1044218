"""Repeated rounds of controllers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Never


async def at_intervals(seconds: float, look: Callable[[], Awaitable[None]]) -> Never:
    """Looks repeatedly, ``seconds`` after the end of the last look, until cancelled."""
    while True:
        await asyncio.sleep(seconds)
        await look()


async def at_intervals_with_group(seconds: float, look: Callable[[asyncio.TaskGroup], Awaitable[None]]) -> Never:
    """Looks at once, then like ``at_intervals``. Tasks that a look starts in the group run beside later looks."""
    async with asyncio.TaskGroup() as group:
        while True:
            await look(group)
            await asyncio.sleep(seconds)
