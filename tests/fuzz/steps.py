"""For how many steps, which are lines of Python of ours, everybody else waits while something is done."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar
from unittest.mock import patch

from app import pause
from app.whatif import expected_starts
from tests.unit.app.lines import lines_once

T = TypeVar("T")
_AFTER_EACH_STEP = -1.0


class CountingLoop(asyncio.SelectorEventLoop):
    """An event loop that knows of what is done in it how much was done at a stretch."""

    def longest(self, work: Coroutine[Any, Any, T]) -> tuple[int, T]:
        """The most lines that are run in one turn of the loop, and what came of the work.

        What pauses after a slice of time pauses here after each step, so that the number is the same each time.
        """
        self._longest, self._counts = 0, True
        try:
            # A forecast is waited for: on a busy machine it would share turns of the loop with the answer.
            with patch.object(pause, "SLICE", _AFTER_EACH_STEP), patch.object(expected_starts, "PATIENCE", 3600.0):
                result = self.run_until_complete(work)
        finally:
            self._counts = False
        return self._longest, result

    _longest = 0
    _counts = False

    def _run_once(self) -> None:
        if self._counts:
            self._longest = max(self._longest, lines_once(super()._run_once))
        else:
            super()._run_once()
