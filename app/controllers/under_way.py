"""What a controller does while it looks on: one thing at a time for each of those that it looks after."""

import asyncio
from collections.abc import Coroutine, Hashable
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class UnderWay(Generic[Key]):
    """For whom something is being done in a task group."""

    def __init__(self) -> None:
        self._keys: set[Key] = set()

    def __contains__(self, key: Key) -> bool:
        """Whether something is being done for this one."""
        return key in self._keys

    def begin(self, group: asyncio.TaskGroup, key: Key, work: Coroutine[Any, Any, None]) -> None:
        """Does something for this one, unless something is being done already."""
        if key in self._keys:
            work.close()
            return
        self._keys.add(key)
        group.create_task(work).add_done_callback(lambda _: self._keys.discard(key))
