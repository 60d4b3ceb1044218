"""Work in a process of its own, so that it takes no time from the test's."""

import multiprocessing
from collections.abc import Callable
from typing import Any


class Apart:
    """Runs ``work(given, over, told)`` from ``start`` to ``end``. Its answer comes through the queue ``told``.

    The event ``over`` says when to answer.
    """

    def __init__(self, work: Callable[[Any, Any, Any], None], given: object) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._over, self._told = spawn.Event(), spawn.Queue()
        self._process = spawn.Process(target=work, args=(given, self._over, self._told), daemon=True)
        self.start = self._process.start

    def end(self, patience: float) -> Any:
        """Tells it that it is over; its answer. Raises queue.Empty where there is none after ``patience`` seconds."""
        self._over.set()
        try:
            return self._told.get(timeout=patience)
        finally:
            self._process.kill()
            self._process.join()
