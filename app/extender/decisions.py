"""What kube-scheduler was told lately: a bounded list, to which adding costs next to nothing."""

import time
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from policy.objects.pod import Pod
from policy.objects.verdict import Refusal

MOST = 1000


class Decision(NamedTuple):
    """What was decided about a pod, at which time (seconds since the epoch). ``refused`` by what, None: by nothing."""

    at: float
    pod: Pod
    verdict: str
    refused: Refusal | None


class Decisions:
    """The most recent decisions."""

    def __init__(self) -> None:
        self._latest: deque[Decision] = deque(maxlen=MOST)

    def note(self, pod: Pod, verdict: str, refused: Refusal | None) -> None:
        """Adds one; the oldest goes when there are too many."""
        self._latest.append(Decision(time.time(), pod, verdict, refused))

    def __iter__(self) -> Iterator[Decision]:
        """The latest first."""
        return reversed(self._latest)
