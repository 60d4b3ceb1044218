"""One Quotaward and one scheduler for test after test, file after file: starting them takes longer than most tests."""

from collections.abc import Iterable
from typing import Self

from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward
from tests.controlplane.scheduler import Scheduler, extender


class Standing:
    """They are started by the first test that asks for them, and stopped for one that has others of its own."""

    def __init__(self) -> None:
        self._quotaward: Quotaward | None = None
        self._scheduler: Scheduler | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.keep(())

    def quotaward(self, control_plane: ControlPlane) -> Quotaward:
        if not self._quotaward:
            self._quotaward = Quotaward(control_plane).__enter__()
        elif not self._quotaward.process.alive:  # a test has failed after it killed it
            self._quotaward.start()
        return self._quotaward

    def _knows_nothing(self) -> bool:
        """Whether it knows of no quota, queue or group: their deletion is believed only after a while."""
        assert self._quotaward is not None
        lists = ("elasticquotas", "queues", "podgroups")
        return not any(self._quotaward.get(f"/api/v1/{each}")["items"] for each in lists)

    def scheduler(self, control_plane: ControlPlane) -> Scheduler:
        if not self._scheduler:
            asked = extender(self.quotaward(control_plane).url)
            self._scheduler = Scheduler(control_plane, asked).__enter__()
        return self._scheduler

    def keep(self, names: Iterable[str]) -> None:
        """Stop those whose names, as of the fixtures, are not among these; the others have seen what was there go."""
        if self._scheduler and "scheduler" not in names:
            self._scheduler.__exit__()
            self._scheduler = None
        if self._quotaward and "quotaward" not in names and "scheduler" not in names:
            self._quotaward.__exit__()
            self._quotaward = None
        if self._quotaward and self._quotaward.process.alive:
            wait_until(self._knows_nothing, "Quotaward has seen that all of the test before is gone")
