"""A gang that needs whole nodes, where small pods keep the cluster full. Seed: reserve action, motivation."""

import itertools

import pytest

from tests.controlplane.objects import is_bound, pod
from tests.controlplane.pod_groups import install_pod_groups, members, pod_group
from tests.controlplane.processes import wait_until
from tests.controlplane.quotaward import Quotaward
from tests.controlplane.scheduler import Scheduler, extender
from tests.e2e.waiting import bound, wait_for

NODES, SIZE = 8, 2
GANG = {f"gang-{number}" for number in range(4)}
ROUNDS = 3
"""How many times every node has each of its small pods replaced, where the gang is to be kept waiting."""


class Stream:
    """Small pods that end one by one, node after node, each followed by a new one: no node ever drains by itself."""

    def __init__(self, cluster, quotaward, watching):
        self.api, self.quotaward, self.watching = cluster.api, quotaward, watching
        self.most_reserved = 0
        self.fewest_elsewhere = NODES * SIZE
        self._numbers = itertools.count()
        self._nodes = itertools.cycle(cluster.nodes(NODES, cpu=SIZE))
        self.api.create_all([self._new() for _ in range(NODES * SIZE)])
        wait_for(watching, bound=NODES * SIZE)

    def goes_on(self):
        """One ends and one more comes, which starts in its place unless the node is reserved."""
        node = next(self._nodes)
        there = self._small_on(node)
        if there:
            self.api.delete(
                "pods", min(there, key=lambda name: int(name.removeprefix("small-"))), self.watching.namespace
            )
            self.api.create(self._new())
            wait_until(lambda: node in self._reserved() or self._is_full_again(node, there), f"{node} is full again")
        reserved = self._reserved()
        self.most_reserved = max(self.most_reserved, len(reserved))
        others = {f"node-{number}" for number in range(NODES)} - reserved
        if not GANG & bound(self.watching):
            self.fewest_elsewhere = min([self.fewest_elsewhere, *(len(self._small_on(each)) for each in others)])

    def _new(self):
        return pod(f"small-{next(self._numbers)}", self.watching.namespace, cpu=1)

    def _small_on(self, node):
        pods = [each for each in self.watching.pods if is_bound(each) and each["spec"]["nodeName"] == node]
        return {each["metadata"]["name"] for each in pods} - GANG

    def _is_full_again(self, node, before):
        now = self._small_on(node)
        return now != before and len(now) == len(before)

    def _reserved(self):
        items = self.quotaward.get("/api/v1/reservations")["items"]
        return {each["node"] for each in items if each["reason"] == "Starving"}


@pytest.fixture
def streaming(cluster, watch):
    """Starts a Quotaward whose jobs starve after so many seconds, a scheduler, the stream, and then the gang."""
    running = []

    def start(seconds):
        install_pod_groups(cluster.api)
        quotaward = Quotaward(cluster.control_plane, "--reserve.starving-after", str(seconds))
        running.append(quotaward.__enter__())
        running.append(Scheduler(cluster.control_plane, extender(quotaward.url)).__enter__())
        namespace = cluster.namespace()
        stream = Stream(cluster, quotaward, watch(namespace))
        cluster.api.create(pod_group("gang", namespace, len(GANG)))
        cluster.api.create_all(members("gang", namespace, len(GANG), cpu=SIZE))
        wait_for(stream.watching, bound=NODES * SIZE, refused=len(GANG), why="Insufficient cpu")
        return stream

    yield start
    for each in reversed(running):
        each.__exit__()


def test_without_a_reservation_a_gang_of_whole_nodes_never_starts_among_small_pods(streaming):
    stream = streaming(3600)
    for _ in range(ROUNDS * NODES * SIZE):
        stream.goes_on()
    assert stream.most_reserved == 0
    assert not GANG & bound(stream.watching)


def test_with_a_reservation_it_starts_on_half_of_the_nodes_beside_small_pods(streaming):
    stream = streaming(4)

    def starts():
        stream.goes_on()
        return bound(stream.watching) >= GANG

    wait_until(starts, "the gang runs", timeout=120)
    assert 0 < stream.most_reserved <= NODES / 2
    assert stream.fewest_elsewhere >= SIZE - 1, "the others stay full but for the one that is being replaced"
    wait_until(lambda: len(bound(stream.watching) - GANG) == NODES * SIZE / 2, "small pods run beside it")
