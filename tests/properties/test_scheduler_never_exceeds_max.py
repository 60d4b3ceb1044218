"""A scheduler that binds only what was admitted never takes a quota past its max, whenever this process is replaced."""

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from policy.admission import Rules
from policy.cluster import Cluster, Unsettled
from policy.elastic_quota import elastic_quota
from policy.grants import SHORTEST
from policy.pod import Unschedulable
from policy.waking import to_wake
from tests.properties.recount import amounts
from tests.properties.world import PENDING, limits, pods

NAMES = [(f"{namespace}{number}", namespace, f"{namespace}{number}") for namespace in "ab" for number in range(4)]
QUICK = SHORTEST / 2.5  # a binding takes less than twice this
arriving = pods(NAMES, (PENDING, {"nominated_node": "n1"}))


class SchedulerMachine(RuleBasedStateMachine):
    @initialize(strict=st.booleans(), bounds=st.tuples(*[limits] * 4), first=st.lists(arriving, min_size=4, max_size=8))
    def begin(self, strict, bounds, first):
        self.rules = Rules(strict_borrowing=strict)
        self.quotas = [elastic_quota("a", "x", 0, *bounds[:2]), elastic_quota("b", "x", 0, *bounds[2:])]
        self.pods, self.bindings, self.conditions, self.now, self.version = {}, {}, {}, 0.0, 0
        self.take_over()
        for pod in first:
            self.create(pod)

    def write(self, pod):
        """The API server takes a change, and the watch shows it."""
        self.version += 1
        self.pods[pod.uid] = replace(pod, version=self.version)
        self.cluster.upsert_pod(self.pods[pod.uid], self.now)

    @rule(pod=arriving)
    def create(self, pod):
        if pod.uid not in self.pods:
            self.write(pod)

    @rule(most=st.integers(1, 8))
    def schedule(self, most):
        """One attempt for each pod that waits. What is said of a refused one is written a little later."""
        waiting = [pod for pod in self.pods.values() if pod.pending and pod.uid not in self.bindings]
        for pod in sorted(waiting, key=lambda pod: -pod.priority)[:most]:
            try:
                refused = self.cluster.admit(pod, self.now)
            except Unsettled:
                continue
            if refused is None:
                self.bindings[pod.uid] = self.now
            else:
                self.conditions[pod.uid] = Unschedulable("Unschedulable", f"1 {refused.message}.")

    @precondition(lambda self: self.conditions)
    @rule()
    def write_conditions(self):
        for uid, condition in self.conditions.items():
            if uid in self.pods and self.pods[uid].pending:
                self.write(replace(self.pods[uid], unschedulable=condition))
        self.conditions = {}

    @precondition(lambda self: self.bindings)
    @rule(choice=st.integers(0, 7), succeeds=st.sampled_from((True, True, False)))
    def finish_binding(self, choice, succeeds):
        uid = sorted(self.bindings)[choice % len(self.bindings)]
        del self.bindings[uid]
        says = Unschedulable("SchedulerError", "binding rejected")
        self.write(replace(self.pods[uid], **{"node": "n1"} if succeeds else {"unschedulable": says}))

    @precondition(lambda self: self.bindings)
    @rule(choice=st.integers(0, 7))
    def relabel_while_binding(self, choice):
        self.write(self.pods[sorted(self.bindings)[choice % len(self.bindings)]])

    @precondition(lambda self: self.pods)
    @rule(choice=st.integers(0, 7), finishes=st.booleans())
    def end(self, choice, finishes):
        uid = sorted(self.pods)[choice % len(self.pods)]
        if finishes and self.pods[uid].assigned:
            self.write(replace(self.pods[uid], finished=True))
        else:
            self.bindings.pop(uid, None)
            self.cluster.delete_pod(uid)
            del self.pods[uid]

    @rule(long=st.booleans())
    def wait(self, long):
        while self.bindings and (long or min(self.bindings.values()) + QUICK < self.now):
            self.finish_binding(0, succeeds=True)
        self.now += 5.0 if long else QUICK
        self.cluster.tick(self.now)

    @rule()
    def take_over(self):
        """Another process, which knows only what the API server has."""
        self.cluster = Cluster(self.rules)
        for quota in self.quotas:
            self.cluster.upsert_quota(quota)
        for pod in self.pods.values():
            self.cluster.upsert_pod(pod, self.now)
        self.cluster.suspect_pending(self.now)

    @rule()
    def look_for_whom_to_wake(self):
        to_wake(self.cluster)

    @invariant()
    def no_quota_is_exceeded(self):
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
                guaranteed = sum(quota.min.get(resource, 0) for quota in self.quotas)
                assert everywhere.get(resource, 0) <= guaranteed


TestSchedulerNeverExceedsMax = SchedulerMachine.TestCase
