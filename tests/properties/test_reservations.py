"""Whoever is let through, in whatever order pods are bound: what is kept on a node is there for the pod it is kept for.

kube-scheduler places one pod after the other, at once in its own picture; we see each on its node only later.
"""

from dataclasses import replace

from hypothesis import given

from policy.cluster.cluster import Cluster
from policy.objects.node import Node
from policy.objects.pod import Pod
from policy.objects.reservation import PodName, Reservation
from tests.properties.world import seeds
from tests.worlds.walk import Pick, by_dice, walk

CORES = {"n1": 6, "n2": 4}
KEPT_ON = "n1"
OWNER = Pod("owner", "a", "owner", {"cpu": 3, "pods": 1})


class HeldWalker:
    """A scheduler that places pods where we let it and it sees room, and the watch that shows them late."""

    def __init__(self, pick: Pick) -> None:
        self.cluster = Cluster(settle_time=0)
        for name, cores in CORES.items():
            self.cluster.upsert_node(Node(name, {"cpu": cores, "pods": 100}))
        self.placed: dict[str, Pod] = {}
        self.unseen: list[str] = []
        self.number, self.trace = 0, []
        self.cluster.upsert_pod(OWNER, now=0)
        self.cluster.upsert_reservation(Reservation("r", PodName("a", "owner", "owner"), KEPT_ON, (), 0.0))

    def steps(self):
        steps = [self.one_is_tried] * 2
        if self.unseen:
            steps.append(self.one_is_seen_on_its_node)
        if self.placed:
            steps.append(self.one_ends)
        return steps

    def free(self, node: str) -> int:
        return CORES[node] - sum(pod.request["cpu"] for pod in self.placed.values() if pod.node == node)

    def one_is_tried(self, pick):
        self.number += 1
        cores, nominated = pick((1, 2, 3)), pick(("", "", "n1", "n2"))
        pod = Pod(f"p{self.number}", "b", f"p{self.number}", {"cpu": cores, "pods": 1}, nominated_node=nominated)
        if pick((True, False)):
            self.cluster.upsert_pod(pod, now=0)
        assert self.cluster.admit(pod, now=0) is None
        held = self.cluster.reservations.nodes_held_from(pod)
        passing = [node for node in CORES if self.free(node) >= cores and node not in held]
        if not passing:
            self.cluster.delete_pod(pod.uid)  # a nomination would go on counting
            return
        self.placed[pod.uid] = replace(pod, node=pick(passing), nominated_node="")
        self.unseen.append(pod.uid)
        self.trace.append(f"{pod.uid} of {cores} cores: {passing}, goes to {self.placed[pod.uid].node}")

    def one_is_seen_on_its_node(self, pick):
        uid = pick(self.unseen)
        self.unseen.remove(uid)
        self.cluster.upsert_pod(self.placed[uid], now=0)

    def one_ends(self, pick):
        uid = pick(sorted(self.placed))
        del self.placed[uid]
        if uid in self.unseen:
            self.unseen.remove(uid)
        self.cluster.delete_pod(uid)

    def check(self):
        assert self.free(KEPT_ON) >= OWNER.request["cpu"]

    def finish(self):
        for uid in self.unseen:
            self.cluster.upsert_pod(self.placed[uid], now=0)
        spare = self.free(KEPT_ON) - OWNER.request["cpu"]
        fits = Pod("last", "b", "last", {"cpu": spare, "pods": 1})
        assert KEPT_ON not in self.cluster.reservations.nodes_held_from(fits)
        more = replace(fits, request={"cpu": spare + 1, "pods": 1})
        assert KEPT_ON in self.cluster.reservations.nodes_held_from(more)


@given(seeds)
def test_what_is_kept_stays_there_and_nothing_else_does(seed):
    pick = by_dice(seed)
    walk(HeldWalker(pick), pick, 40)
