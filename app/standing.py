"""Whether this replica may be asked: it leads where it has to, and is not about to stop."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from app.problems import Problem
from app.store.store import Store

Answer = TypeVar("Answer")

NOT_LEADING = "another replica leads"


@dataclass(slots=True)
class Standing:
    """``leads`` tells whether this replica leads, where only the leader answers; ``stopping``: it was told to end."""

    store: Store
    leads: Callable[[], bool] = lambda: True
    stopping: bool = False

    def unready(self) -> str:
        """Why nobody should be sent here; empty if that is as well."""
        if self.stopping:
            return "shutting down"
        return self.store.unready() if self.leads() else NOT_LEADING

    def for_leader(self, answer: Callable[[bytes], Answer]) -> Callable[[bytes], Answer]:
        """The same, but for a replica that does not lead: it knows nothing of what the leader has granted.

        The connection ends with that, so that the scheduler makes a new one, to the leader.
        """

        def asked(body: bytes) -> Answer:
            if not self.leads():
                raise Problem(503, NOT_LEADING, retry_after=1, closes=True)
            return answer(body)

        return asked
