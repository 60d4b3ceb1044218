"""Looks at a Quotaward again and again: whether it is ready, how much memory it has, how long it has worked."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import httpx

from tests.controlplane.processes import processor_seconds, resident_memory

EVERY = 0.5  # seconds
PATIENCE = 5.0
"""Seconds until a probe has failed that is not answered."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen at one moment (seconds): memory in MB, and what ``/readyz`` said instead of yes.

    ``worked``: processor time of each program so far.
    """

    at: float
    memory: float
    worked: Mapping[str, float]
    answered_in: float
    trouble: str = ""


class Observer:
    """Looks while it is open. ``others``: programs of which it is seen how long they have worked, too."""

    def __init__(self, url: str, pid: int, others: Mapping[str, int]) -> None:
        self.looks: list[Look] = []
        self._url, self._pid, self._others = url, pid, others
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(2 * PATIENCE)

    def during(self, start: float, end: float) -> list[Look]:
        return [look for look in list(self.looks) if start <= look.at < end]

    def _run(self) -> None:
        with httpx.Client(base_url=self._url, timeout=PATIENCE, trust_env=False) as client:
            while not self._over.wait(EVERY):
                self.looks.append(self._look(client))

    def _look(self, client: httpx.Client) -> Look:
        began = time.monotonic()
        try:
            answer = client.get("/readyz")
            trouble = "" if answer.is_success else f"{answer.status_code}: {answer.text[:200]}"
        except httpx.TransportError as error:
            trouble = repr(error)
        now = time.monotonic()
        pids = {"Quotaward": self._pid, **self._others}
        worked = {name: processor_seconds(pid) for name, pid in pids.items()}
        return Look(now, resident_memory(self._pid), worked, now - began, trouble)
