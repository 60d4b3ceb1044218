"""How pytest-xdist shares out the files of tests: most wait for a cluster, so that one more process may compute."""

from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler.loadfile import LoadFileScheduling
from xdist.workermanage import WorkerController

TESTS = Path(__file__).parent
WAITING = ("chaos", "hostile", "e2e", "browser", "cases", "bench", "access", "store", "monitoring", "wire")
"""The kinds of tests that wait for other programs most of the time, those of which a file may take long first."""
COMPUTING = ("fuzz",)
"""The kinds that compute for longest."""
STARTING = {"launch", "run_quotaward", "serving"}
"""What a file imports whose tests start Quotaward: they are forked from a process that each pytest has for itself."""


class FromBothEnds(LoadFileScheduling):
    """As with ``--dist loadfile``, but the last of several processes takes files from the end."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        last = self.numnodes - 1
        if last and node.gateway.id == f"gw{last}":
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)


def sort(items: list[pytest.Item]) -> None:
    """Puts what takes longest at both ends, so that nobody works alone in the end.

    What starts Quotaward stands together, so that as few as possible have to load it once more for that.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    modules = {item.path: getattr(item, "module", None) for item in items}
    starting = {file for file, module in modules.items() if not STARTING.isdisjoint(dir(module))}

    @cache
    def rank(file: Path) -> tuple[int, bool, bool, bool]:
        kind = file.relative_to(TESTS).parts[0]
        waiting = WAITING.index(kind) if kind in WAITING else len(WAITING)
        return waiting, kind in COMPUTING, file in slow, file not in starting

    items.sort(key=lambda item: rank(item.path))
