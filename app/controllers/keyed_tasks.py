"""Keyed tasks of a controller that run beside its looks: one at a time for each key."""

import asyncio
from collections.abc import Coroutine, Hashable
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class KeyedTasks(Generic[Key]):
    """The keys for which a task is running in a task group."""

    def __init__(self) -> None:
        self._keys: set[Key] = set()

    def __contains__(self, key: Key) -> bool:
        """Whether a task is running for this key."""
        return key in self._keys

    def begin(self, group: asyncio.TaskGroup, key: Key, work: Coroutine[Any, Any, None]) -> None:
        """Starts work for this key, unless a task is running for it."""
        if key in self._keys:
            work.close()
            return
        self._keys.add(key)
        group.create_task(work).add_done_callback(lambda _: self._keys.discard(key))
