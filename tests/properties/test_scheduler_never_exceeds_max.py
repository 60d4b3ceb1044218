"""A scheduler that binds only what was admitted never takes a quota past its max, whenever this process is replaced."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy.cluster.cluster import Cluster
from policy.cluster.grants import SHORTEST
from policy.cluster.pod_admission import Unsettled
from policy.objects.pod import Unschedulable
from policy.queueing.waking import to_wake
from policy.quota.admission import Rules
from policy.quota.elastic_quota import elastic_quota
from tests.properties.recount import amounts
from tests.properties.world import PENDING, a_pod, limits
from tests.worlds.walk import Pick, by_dice, by_hypothesis, scaled, walk

NAMES = [(f"{namespace}{number}", namespace, f"{namespace}{number}") for namespace in "aab" for number in range(4)]
ARRIVING = (PENDING, PENDING, {"nominated_node": "n1"})
QUICK = SHORTEST / 2.5  # a binding takes less than twice this


class SchedulerWalker:
    """An API server with a scheduler, one quota per namespace, and a process that is asked and watches."""

    def __init__(self, pick: Pick) -> None:
        self.rules = Rules(strict_borrowing=pick((False, True)))
        self.quotas = [elastic_quota(namespace, "x", 0, limits(pick), limits(pick)) for namespace in "ab"]
        self.trace = [str(self.rules), *map(str, self.quotas)]
        self.pods, self.bindings, self.conditions, self.now, self.version = {}, {}, {}, 0.0, 0
        self.another_process_takes_over(pick)
        for _ in range(6):
            self.is_created(pick)

    def steps(self):
        steps = [self.is_created] * 2 + [self.time_passes]
        if self.waiting():
            steps += [self.some_are_scheduled] * 4
        if self.bindings:
            steps += [self.a_binding_finishes] * 3 + [self.is_relabelled_while_binding]
            steps += [self.another_process_takes_over] * 2
        if self.conditions:
            steps += [self.conditions_are_written] * 2
        if self.cluster.attempts.refused:
            steps += [self.somebody_looks_for_whom_to_wake]
        if self.pods:
            steps += [self.one_ends]
        return steps

    def waiting(self):
        return [pod for pod in self.pods.values() if pod.pending and pod.uid not in self.bindings]

    def write(self, pod):
        """The API server takes a change, and the watch shows it."""
        self.version += 1
        self.pods[pod.uid] = replace(pod, version=self.version)
        self.cluster.upsert_pod(self.pods[pod.uid], self.now)

    def is_created(self, pick):
        identity = pick(NAMES)
        if identity[0] not in self.pods:
            pod = a_pod(pick, *identity, states=ARRIVING)
            self.trace.append(f"create {pod.uid} {pod.request} {pod.priority} preemptible: {pod.preemptible}")
            self.write(pod)

    def some_are_scheduled(self, pick):
        """One attempt for each pod that waits. What is said of a refused one is written a little later."""
        for pod in sorted(self.waiting(), key=lambda pod: -pod.priority)[: pick((1, 2, 4, 8))]:
            try:
                refused = self.cluster.admit(pod, self.now)
            except Unsettled:
                self.trace.append(f"unsettled {pod.uid}")
                continue
            self.trace.append(f"{refused.message if refused else 'admitted'}: {pod.uid}")
            if refused is None:
                self.bindings[pod.uid] = self.now
            else:
                self.conditions[pod.uid] = Unschedulable("Unschedulable", f"1 {refused.message}.")

    def conditions_are_written(self, pick):
        self.trace.append(f"write conditions of {list(self.conditions)}")
        for uid, condition in self.conditions.items():
            if uid in self.pods and self.pods[uid].pending:
                self.write(replace(self.pods[uid], unschedulable=condition))
        self.conditions = {}

    def a_binding_finishes(self, pick):
        self.finish_binding(pick(sorted(self.bindings)), succeeds=pick((True, True, False)))

    def finish_binding(self, uid, *, succeeds):
        self.trace.append(f"bound: {uid}" if succeeds else f"cannot be bound: {uid}")
        del self.bindings[uid]
        self.conditions.pop(uid, None)
        says = Unschedulable("SchedulerError", f"binding rejected at {self.now}")
        self.write(replace(self.pods[uid], **{"node": "n1"} if succeeds else {"unschedulable": says}))

    def is_relabelled_while_binding(self, pick):
        self.write(self.pods[pick(sorted(self.bindings))])

    def one_ends(self, pick):
        uid = pick(sorted(self.pods))
        self.trace.append(f"end {uid}")
        if pick((True, False)) and self.pods[uid].assigned:
            self.write(replace(self.pods[uid], finished=True))
        else:
            self.bindings.pop(uid, None)
            self.conditions.pop(uid, None)
            self.cluster.delete_pod(uid)
            del self.pods[uid]

    def time_passes(self, pick):
        for uid, since in sorted(self.bindings.items(), key=lambda binding: binding[1]):
            if since + QUICK < self.now:
                self.finish_binding(uid, succeeds=True)
        self.pass_time(QUICK if self.bindings else pick((QUICK, 5.0)))

    def pass_time(self, seconds):
        self.trace.append(f"wait {seconds} s")
        self.now += seconds
        self.cluster.tick(self.now)

    def another_process_takes_over(self, pick):
        """One that knows only what the API server has."""
        self.trace.append("another process")
        self.cluster = Cluster(self.rules)
        for quota in self.quotas:
            self.cluster.upsert_quota(quota)
        for pod in self.pods.values():
            self.cluster.upsert_pod(pod, self.now)
        self.cluster.in_flight.suspect(self.now)

    def somebody_looks_for_whom_to_wake(self, pick):
        to_wake(self.cluster)

    def check(self):
        used = [pod for pod in self.pods.values() if pod.assigned or pod.uid in self.bindings]
        pinned = [pod for pod in used if not pod.preemptible]
        lent = {resource for quota in self.quotas for resource in quota.min}
        for quota in self.quotas:
            of_all, of_pinned = amounts(used, quota.namespace), amounts(pinned, quota.namespace)
            assert all(of_all.get(resource, 0) <= most for resource, most in quota.max.items())
            assert all(of_pinned.get(resource, 0) <= quota.min.get(resource, 0) for resource in lent)
        if self.rules.strict_borrowing:
            everywhere = amounts(used, "a", "b")
            for resource in lent:
                assert everywhere.get(resource, 0) <= sum(quota.min.get(resource, 0) for quota in self.quotas)

    def finish(self):
        """In the end everybody has been bound or refused, and who was refused still is."""
        for uid in list(self.bindings):
            self.finish_binding(uid, succeeds=True)
        self.pass_time(60.0)
        self.check()
        account = self.cluster.ledger.account("a")
        assert account.used == account.assigned


@given(st.data())
def test_no_max_is_exceeded(data):
    pick = by_hypothesis(data)
    walk(SchedulerWalker(pick), pick, length=20)


@pytest.mark.parametrize("seed", range(8))
def test_no_max_is_exceeded_on_long_walks(seed):
    for number in range(scaled(60)):
        pick = by_dice(1000 * seed + number)
        walk(SchedulerWalker(pick), pick, length=60)
