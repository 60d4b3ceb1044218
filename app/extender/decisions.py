"""The latest answers to kube-scheduler: a bounded list, to which adding costs next to nothing."""

import time
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from policy.objects.pod import Pod
from policy.objects.verdict import Refusal

MOST = 1000


class Decision(NamedTuple):
    """A decision about a pod, and its time in seconds since the epoch. ``refused``: the refusal, or None.

    It has the names and the UID of the pod alone: a pod itself may be large, and would be kept long after it is gone.
    """

    at: float
    namespace: str
    name: str
    verdict: str
    refused: Refusal | None
    uid: str


class Decisions:
    """The most recent decisions."""

    def __init__(self) -> None:
        self._latest: deque[Decision] = deque(maxlen=MOST)

    def note(self, pod: Pod, verdict: str, refused: Refusal | None) -> None:
        """Adds a decision, and drops the oldest where there are too many."""
        self._latest.append(Decision(time.time(), pod.namespace, pod.name, verdict, refused, pod.uid))

    def __iter__(self) -> Iterator[Decision]:
        """Iterates over the decisions, the latest first."""
        return reversed(self._latest)
