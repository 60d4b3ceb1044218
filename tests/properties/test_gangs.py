"""A gang starts whole or not at all, whoever asks in whatever order, and however late we see what the scheduler did.

The scheduler of the walks tries every member again within the time that its place is held, as a real one does.
"""

from dataclasses import replace

import pytest
from hypothesis import given

from policy.cluster.cluster import Cluster
from policy.cluster.gang_admission import BACKOFF, MOST_DOUBLED
from policy.objects.constraints import Constraints
from policy.objects.group import Group
from policy.objects.node import Node
from policy.objects.pod import Pod
from policy.queueing.waking import to_wake
from policy.quota.elastic_quota import elastic_quota
from tests.properties.world import seeds
from tests.unit.given_nodes import HOSTNAME, term
from tests.worlds.walk import Pick, by_dice, scaled, walk

CORES = {"n1": 4, "n2": 3, "n3": 2}
HOLD_TIME = 10.0
MAX = 8
LATER = HOLD_TIME + BACKOFF * 2**MOST_DOUBLED + 100
APART = Constraints(anti_affinity=(term(HOSTNAME, None, app="apart"),))


class GangWalker:
    """A scheduler that places pods where we let it and it sees room, and the watch that shows them late."""

    def __init__(self, pick: Pick) -> None:
        self.cluster = Cluster(settle_time=0, hold_time=HOLD_TIME)
        for name, cores in CORES.items():
            self.cluster.upsert_node(Node(name, {"cpu": cores, "pods": 100}, {HOSTNAME: name}))
        self.cluster.upsert_quota(elastic_quota("a", "quota", 0.0, {}, {"cpu": MAX}))
        self.waiting: dict[str, Pod] = {}
        self.placed: dict[str, Pod] = {}
        self.unseen: list[str] = []
        self.minimum: dict[str, int] = {}
        self.number, self.now, self.trace = 0, 0.0, []

    def steps(self):
        steps = [self.a_gang_comes, self.a_pod_comes, self.time_passes]
        if self.waiting:
            steps += [self.one_is_tried] * 6
        if self.unseen:
            steps += [self.one_is_seen_on_its_node] * 2
        if self.placed:
            steps.append(self.a_job_ends)
        return steps

    # What happens

    def a_gang_comes(self, pick):
        self.number += 1
        name, minimum = f"g{self.number}", pick((2, 3, 4))
        self.minimum[name] = minimum
        self.cluster.upsert_group(Group(pick("ab"), name, minimum))
        namespace = next(namespace for namespace, group in self.cluster.membership.groups if group == name)
        apart = pick((False, False, False, True))
        for at in range(minimum + pick((0, 0, 1))):
            rest = {"constraints": APART, "labels": {"app": "apart"}} if apart else {}
            self.comes(f"{name}-{at}", namespace, pick((1, 1, 2)), pick, group=name, **rest)

    def a_pod_comes(self, pick):
        self.number += 1
        self.comes(f"p{self.number}", pick("ab"), pick((1, 2, 3)), pick)

    def comes(self, name, namespace, cores, pick, **rest):
        priority = 0 if "constraints" in rest else pick((0, 0, 1))
        pod = Pod(name, namespace, name, {"cpu": cores, "pods": 1}, priority=priority, **rest)
        self.waiting[name] = pod
        self.cluster.upsert_pod(pod, self.now)
        self.trace.append(f"{name} {namespace} {cores} cores, priority {pod.priority} {rest.get('group', '')}")

    def one_is_tried(self, pick):
        self.is_tried(pick(sorted(self.waiting)), pick)

    def is_tried(self, uid, pick):
        """As kube-scheduler does: only with nodes that it sees room on, and it places the pod where we let it."""
        pod = self.waiting[uid]
        offered = [node for node in CORES if self.fits(pod, node)]
        if not offered or self.cluster.admit(pod, self.now, tuple(offered)) is not None:
            return
        node = self.cluster.gangs.node_for(uid)
        held = self.cluster.reservations.nodes_held_from(pod)
        passing = [node] if node else [each for each in offered if each not in held]
        if not passing:
            self.cluster.withdraw(uid)
            return
        assert set(passing) <= set(offered)
        self.placed[uid] = replace(self.waiting.pop(uid), node=pick(passing))
        self.unseen.append(uid)
        self.trace.append(f"{uid} goes to {self.placed[uid].node} of {passing}")

    def fits(self, pod, node):
        there = [other for other in self.placed.values() if other.node == node]
        crowded = pod.constraints is APART and any(other.constraints is APART for other in there)
        return not crowded and CORES[node] - sum(other.request["cpu"] for other in there) >= pod.request["cpu"]

    def one_is_seen_on_its_node(self, pick):
        uid = pick(self.unseen)
        self.unseen.remove(uid)
        self.cluster.upsert_pod(self.placed[uid], self.now)

    def a_job_ends(self, pick):
        """A pod in no group, or all pods of a group that has started."""
        uid = pick(sorted(self.placed))
        group = self.placed[uid].group
        if group and self.started(group) < self.minimum[group]:
            return
        for each in [each for each, pod in (*self.placed.items(), *self.waiting.items()) if pod.group == group]:
            if group or each == uid:
                self.placed.pop(each, None)
                self.waiting.pop(each, None)
                self.cluster.delete_pod(each)
                if each in self.unseen:
                    self.unseen.remove(each)
        self.trace.append(f"{group or uid} ends")

    def time_passes(self, pick):
        self.place_all_that_is_held(pick)
        while self.unseen:
            self.one_is_seen_on_its_node(pick)
        self.now += pick((1.0, HOLD_TIME, 2 * HOLD_TIME))
        self.cluster.tick(self.now)
        self.trace.append(f"it is {self.now}")

    def place_all_that_is_held(self, pick):
        """Whatever happened, there is a place for each member that something is held for."""
        for uid in sorted(uid for uid in self.waiting if self.cluster.gangs.is_awaited(uid)):
            self.is_tried(uid, pick)
            assert uid in self.placed, f"{uid} has no place"

    def started(self, group):
        return sum(pod.group == group for pod in self.placed.values())

    # What has to hold

    def check(self):
        used = sum(pod.request["cpu"] for pod in self.placed.values() if pod.namespace == "a")
        assert used <= MAX
        granted = {pod.uid: pod for pod in self.cluster.grants.pods()}
        seen = {uid: pod for uid, pod in self.placed.items() if uid not in self.unseen}
        counted = [pod for pod in (granted | seen).values() if pod.namespace == "a"]
        assert self.cluster.ledger.account("a").used.get("cpu", 0) == sum(pod.request["cpu"] for pod in counted)
        assert set(self.cluster.ledger.entries) == set(granted | seen)
        for group, minimum in self.minimum.items():
            ready = sum(pod.group == group for pod in (granted | seen).values())
            assert ready == 0 or ready >= minimum, f"{ready} of {group}"
        table = self.cluster.table
        expected = {uid for uid, placed in table.expected.items() if placed.site.name in CORES}
        assert expected == {uid for uid in granted if self.cluster.gangs.node_for(uid)}

    def finish(self):
        pick = by_dice(0)
        self.place_all_that_is_held(pick)
        for group, minimum in self.minimum.items():
            assert self.started(group) == 0 or self.started(group) >= minimum
        self.time_passes(pick)
        self.now += LATER
        self.cluster.tick(self.now)
        assert len(self.cluster.grants) == len(self.cluster.gangs.holds) == 0
        for group in sorted({pod.group for pod in self.waiting.values()} - {""}):
            self.check_that_it_waits_for_a_reason(group, pick)

    def check_that_it_waits_for_a_reason(self, group, pick):
        """With the cluster empty but for it, a gang starts, or there was never room for it."""
        for uid in list(self.placed):
            del self.placed[uid]
            self.cluster.delete_pod(uid)
        members = sorted(uid for uid, pod in self.waiting.items() if pod.group == group)
        small = all(self.waiting[uid].request["cpu"] == 1 for uid in members)
        apart = any(self.waiting[uid].constraints is APART for uid in members)
        for uid in members * 2:
            if uid in self.waiting:
                self.is_tried(uid, pick)
        if small and len(members) >= self.minimum[group] and not (apart and self.minimum[group] > len(CORES)):
            assert self.started(group) >= self.minimum[group]


@given(seeds)
def test_a_gang_starts_whole_or_not_at_all(seed):
    pick = by_dice(seed)
    walk(GangWalker(pick), pick, 40)


@pytest.mark.parametrize("seed", range(8))
def test_a_gang_starts_whole_or_not_at_all_on_long_walks(seed):
    for number in range(scaled(25)):
        pick = by_dice(1000 * seed + number)
        walk(GangWalker(pick), pick, 150)


@given(seeds)
def test_who_is_woken_of_gangs_would_pass_and_looking_changes_nothing(seed):
    pick = by_dice(seed)
    walker = GangWalker(pick)
    walk(walker, pick, 30)
    cluster = walker.cluster
    for uid, pod in walker.waiting.items():
        cluster.attempts.refused[uid] = pod
    before = dict(cluster.ledger.entries), cluster.generations.admission, cluster.table.used.tolist()
    woken = to_wake(cluster)
    assert before == (
        dict(cluster.ledger.entries),
        cluster.generations.admission,
        cluster.table.used.tolist(),
    )
    if woken:
        assert cluster.admit(woken[0], walker.now) is None
