"""How a run ends."""

import time

from tests.chaos.history import KINDS, Record
from tests.chaos.run import come_to_rest
from tests.controlplane.objects import pod


class Busy:
    """A recorder of a cluster where all is quiet until somebody looks at it; then a pod ends."""

    def __init__(self):
        self.records = [Record(time.monotonic() - 60, 1, "ADDED", "pods", pod("p", "a"))]

    def objects(self):
        self.records.append(Record(time.monotonic(), 2, "DELETED", "pods", pod("p", "a")))
        return {kind: [] for kind in KINDS}


def test_what_happens_after_all_has_come_to_rest_is_not_judged():
    recorder = Busy()
    waiting, records = come_to_rest(recorder)
    assert (waiting, len(records), len(recorder.records)) == ([], 1, 2)
