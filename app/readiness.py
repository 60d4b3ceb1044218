"""Readiness of this replica: it leads if it has to, and is not stopping."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from app.problems import Problem
from app.store.store import Store

Answer = TypeVar("Answer")

NOT_LEADING = "another replica leads"


@dataclass(slots=True)
class Readiness:
    """``leads``: whether this replica leads, if only the leader answers; ``stopping``: whether it was told to stop."""

    store: Store
    leads: Callable[[], bool] = lambda: True
    stopping: bool = False

    def unready(self) -> str:
        """Says why this replica must not be asked; empty if it may be."""
        if self.stopping:
            return "shutting down"
        return self.store.unready() if self.leads() else NOT_LEADING

    def for_leader(self, answer: Callable[[bytes], Answer]) -> Callable[[bytes], Answer]:
        """Wraps a verb: a replica that does not lead refuses, as it does not know the leader's grants.

        The refusal closes the connection, so that the scheduler opens a new one, to the leader.
        """

        def asked(body: bytes) -> Answer:
            if not self.leads():
                raise Problem(503, NOT_LEADING, retry_after=1, closes=True)
            return answer(body)

        return asked
