"""Seats for questions that take much work, shared fairly: a client with many questions waits longer.

This is fair queueing (J. Nagle, RFC 970), as in API priority and fairness of the API server: each asker has a queue,
and the queues take turns. Questions with a seat work in slices, also in turn (see app.pause). So a question of
seconds delays a short one by no more than the short one's own work.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple

from app.observability import metrics
from app.problems import Problem

SEATS = 4
"""Questions under way at a time: each may keep some copies of the cluster."""
EACH = SEATS - 1
"""Maximum number of seats of one asker."""
MOST = 16
"""Questions of one asker about one namespace that may be under way or wait; each of a what-if may keep a body."""

TOO_MANY = "too many questions like this one, of yours, wait for their answer; ask again when they have it"


class Flow(NamedTuple):
    """A flow of questions, answered one at a time: the asker, and the subject (a namespace, or a path)."""

    asker: str
    about: str


Line = dict[str, deque[asyncio.Future[None]]]
"""An asker's questions that wait for a seat, by subject; the first subject is next."""


class Seats:
    """Gives a bounded number of seats to askers in turn, and to each asker's namespaces in turn."""

    def __init__(self) -> None:
        """Starts with all seats free."""
        self._questions: Counter[Flow] = Counter()
        self._seated: list[Flow] = []
        self._lines: dict[str, Line] = {}

    @contextmanager
    def question(self, flow: Flow) -> Iterator[None]:
        """Counts a question from its first byte to the end of its answer. Raises Problem (429)."""
        if self._questions[flow] >= MOST:
            metrics.QUESTIONS_REFUSED.inc()
            raise Problem(429, TOO_MANY, retry_after=1)
        self._questions[flow] += 1
        try:
            yield
        finally:
            self._questions[flow] -= 1
            if not self._questions[flow]:
                del self._questions[flow]

    @asynccontextmanager
    async def seat(self, flow: Flow) -> AsyncIterator[None]:
        """Waits for a seat, and holds it within the context."""
        turn = asyncio.get_running_loop().create_future()
        self._lines.setdefault(flow.asker, {}).setdefault(flow.about, deque()).append(turn)
        try:
            with metrics.QUESTIONS_WAITING.track_inprogress():
                self._fill()
                await turn
            with metrics.QUESTIONS_UNDER_WAY.track_inprogress():
                yield
        finally:
            if not turn.cancelled():  # else it is skipped when its turn comes
                self._seated.remove(flow)
                self._fill()

    def _fill(self) -> None:
        """Gives free seats to the flows that are next. Their asker and their subject become the last in turn."""
        while len(self._seated) < SEATS and (flow := self._next()) is not None:
            line = self._lines.pop(flow.asker)
            turns = line.pop(flow.about)
            turn = turns.popleft()
            if turns:
                line[flow.about] = turns
            if line:
                self._lines[flow.asker] = line
            if not turn.cancelled():
                self._seated.append(flow)
                turn.set_result(None)

    def _next(self) -> Flow | None:
        """Returns the next flow that may have a seat."""
        taken = Counter(flow.asker for flow in self._seated)
        flows = (Flow(asker, about) for asker, line in self._lines.items() if taken[asker] < EACH for about in line)
        return next((flow for flow in flows if flow not in self._seated), None)
