"""Whoever comes, goes early, or is bound late: who is promised a start has room by then, and nobody let in moves it.

All run times are true: a pod is ended by its deadline and its grace period after it. A second is one step, so that
everything that our controllers do happens in time.
"""

from dataclasses import dataclass, replace
from itertools import accumulate
from math import inf

import pytest
from hypothesis import given

from policy.cluster.cluster import Cluster
from policy.cluster.reserved_nodes import ReservedNodes
from policy.objects.node import Node
from policy.objects.pod import Pod, Unschedulable
from policy.quota.admission import Rules
from policy.reserve import promises
from policy.reserve.starving import Terms
from policy.stepwise import at_once
from tests.properties.world import seeds
from tests.unit.given_jobs import NO_ROOM, NOW, reserve_all
from tests.worlds.walk import Pick, by_dice

CORES = {"n1": 4, "n2": 6, "n3": 8}
TERMS = Terms(starving_after=20, max_nodes_percent=100)
SECONDS = 120


@dataclass
class Run:
    """A pod in truth: where it is, when it is seen there, and when it is gone at the latest."""

    pod: Pod
    node: str
    bound_at: float
    gone_at: float = inf
    seen: bool = False


class World:
    """A scheduler that places pods where we let it and it sees room, nodes that end them, and our controller."""

    def __init__(self, pick: Pick, *, whole_nodes: bool, ahead: int) -> None:
        self.pick, self.now, self.number = pick, NOW, 0
        self.terms = replace(TERMS, ahead=ahead)
        self.cluster = Cluster(Rules(backfill_margin=6, whole_nodes=whole_nodes), settle_time=0)
        for name, cores in CORES.items():
            self.cluster.upsert_node(Node(name, {"cpu": cores, "pods": 100}))
        self.runs: dict[str, Run] = {}
        self.waiting: dict[str, Pod] = {}
        self.backfilled = self.kept = 0

    def free(self, node: str) -> int:
        return CORES[node] - sum(run.pod.request["cpu"] for run in self.runs.values() if run.node == node)

    def passes(self) -> None:
        self.now += 1
        self.cluster.tick(self.now - NOW)
        self.cluster.protection.pass_time(self.now)
        for uid, run in list(self.runs.items()):
            if not run.seen and run.bound_at <= self.now:
                run.seen = True
                run.gone_at = self.now + run.pod.deadline + run.pod.grace if run.pod.deadline else inf
                self.cluster.upsert_pod(replace(run.pod, node=run.node, started=self.now, unschedulable=None), 0)
            early = self.pick(range(40)) == 0
            if run.seen and (run.gone_at <= self.now or early):
                self.goes(uid)
        if self.pick((True, False)):
            self.comes()
        for pod in sorted(self.waiting.values(), key=lambda each: each.created):
            self.is_tried(pod)
        reserve_all(self.cluster, self.terms, self.now)
        self.promises()

    def goes(self, uid: str) -> None:
        del self.runs[uid]
        self.cluster.delete_pod(uid)

    def comes(self) -> None:
        pick, self.number = self.pick, self.number + 1
        name, deadline = f"p{self.number}", pick((0, 5, 10, 10, 20, 40, 60))
        request = {"cpu": pick((1, 1, 1, 2, 3, 4, 6, 8)), "pods": 1}
        pod = Pod(name, "a", name, request, created=self.now, deadline=deadline, grace=pick((0, 1, 3)))
        self.waiting[name] = pod
        self.cluster.upsert_pod(pod, self.now - NOW)

    def is_tried(self, pod: Pod) -> None:
        passing = [node for node in CORES if self.free(node) >= pod.request["cpu"]]
        message = NO_ROOM.message
        if passing:
            answer = self.cluster.filter(pod, self.now - NOW, lambda: passing)
            if answer.refused is None:
                passing = [node for node in passing if node not in answer.failed]
            else:
                passing, message = [], answer.refused.message
        if not passing:
            known = replace(pod, unschedulable=Unschedulable("Unschedulable", message))
            if self.waiting[pod.uid] != known:
                self.waiting[pod.uid] = known
                self.cluster.upsert_pod(known, self.now - NOW)
            return
        node = self.pick(passing)
        self.backfilled += any(each.promised_start > self.now and each.node == node for each in self.reserved())
        del self.waiting[pod.uid]
        self.runs[pod.uid] = Run(pod, node, self.now + self.pick((0, 0, 1, 3)))

    def reserved(self):
        reservations = self.cluster.reservations
        return [each for each in reservations.reserved if reservations.is_reserved(each)]

    def promises(self) -> None:
        for key in sorted({(each.pod.namespace, each.job) for each in self.reserved()}):
            own = [each for each in self.reserved() if (each.pod.namespace, each.job) == key]
            before = max(each.promised_start for each in own)
            decided = at_once(promises.decide_steps(self.cluster, own, before, self.now))
            assert not decided.moved, decided
            assert not decided.late, decided
            assert decided.promise.at <= before or not before
            for each in own:
                self.cluster.upsert_reservation(promises.noted(each, decided, self.now))
                if decided.promise.at and decided.promise.at <= self.now and each.pod.uid in self.waiting:
                    self.kept += 1
                    asked = self.cluster.pods[each.pod.uid].request["cpu"]
                    assert self.free(each.node) >= asked, f"{each} has no room at {self.now}"


def play(pick: Pick) -> World:
    world = World(pick, whole_nodes=pick((True, False, False)), ahead=pick((0, 0, 1, 3)))
    for _ in range(SECONDS):
        world.passes()
    return world


@pytest.mark.slow  # some of its worlds are played in the next one
@given(seeds)
def test_no_promise_is_late_and_nobody_let_in_moves_one(seed):
    play(by_dice(seed))


def test_there_are_promises_and_backfill_in_these_worlds():
    so_far = accumulate(play(by_dice(seed)).backfilled for seed in range(10))
    assert any(number > 10 for number in so_far), "promises are rare"


def _without_grace_or_margin(nodes: ReservedNodes, pod: Pod) -> float | None:
    return nodes._cluster.run_times.ends_at(pod, nodes._cluster.protection.now, enforced=True)


MUTANTS = {
    "it does not have to be gone in time": ("gone_at", lambda _, __: 0.0),
    "grace period and margin are forgotten": ("gone_at", _without_grace_or_margin),
    "granted pods on their way are forgotten": ("may_come", lambda _: iter(())),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_rule_is_found(mutant, monkeypatch):
    monkeypatch.setattr(ReservedNodes, *MUTANTS[mutant])

    def many():
        for seed in range(200):
            play(by_dice(seed))

    with pytest.raises(AssertionError):
        many()
