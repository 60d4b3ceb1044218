"""The two clocks of a plan: what is waited for is measured on the store's, and recorded in seconds since the epoch."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clocks:
    """``now`` returns the time on the store's clock, ``epoch`` the seconds since the epoch."""

    now: Callable[[], float]
    epoch: Callable[[], float]

    def on_store(self, at: float) -> float:
        """Converts a time since the epoch to the store's clock; never later than now."""
        return self.now() - max(0.0, self.epoch() - at)
