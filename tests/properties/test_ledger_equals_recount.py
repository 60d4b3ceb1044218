"""Whatever happens in whatever order: the ledger is what a recount from scratch finds, and decides as it would."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy.cluster import pod_states
from policy.cluster.cluster import Cluster
from policy.cluster.pod_admission import Unsettled
from policy.explain.verdicts import verdict_on
from policy.objects.pod import Pod
from policy.objects.reservation import PodName, Reservation
from policy.objects.resources import total
from policy.queueing.waking import to_wake
from policy.quota.admission import Rules
from policy.quota.entitlement import share_lent
from policy.stepwise import at_once
from tests.properties.recount import Recount, amounts, ours
from tests.properties.world import CHANGES, NAMESPACES, NODES, a_pod, a_quota
from tests.worlds.walk import Pick, by_dice, by_hypothesis, scaled, walk

# Two pods of one name are a pod and the one that was made anew after it.
UIDS = {
    "a1": ("a", "one"),
    "a2": ("a", "two"),
    "a3": ("a", "one"),
    "b1": ("b", "one"),
    "b2": ("b", "two"),
    "c1": ("c", "one"),
}
VERSIONS = range(7)
STANDING = {"assigned", "nominated", "held", "pending"}
"""How pods stand in the ledger once all time has passed."""
NODE_STATES = (
    *({}, {}, {"unschedulable": True}, {"ready": False}, {"ready": False, "reachable": False}),
    {"allocatable": {"cpu": 1, "pods": 100}},
)


class LedgerWalker:
    """Does everything that can be done to a cluster, to the recount as well, and compares."""

    def __init__(self, pick: Pick) -> None:
        strict = pick((False, True))
        self.now = 0.0
        self.cluster = Cluster(Rules(strict_borrowing=strict), grant_lifetime=8, settle_time=3, overdue_after=4)
        self.recount = Recount(strict=strict, lifetime=8, settle_time=3, overdue_after=4)
        self.recount.keeps_claim = self.cluster.attempts.keeps_claim
        self.trace = [f"strict: {strict}"]
        for node in NODES:
            self.see_node(node)
        for namespace in NAMESPACES[:2]:
            self.quota_is_seen(lambda options, only=namespace: only if options == NAMESPACES else pick(options))
        self.generation, self.kept_out = self.cluster.generations.admission, {}

    def steps(self):
        steps = [self.is_seen] * 3 + [self.is_deleted, self.quota_is_seen, self.quota_is_deleted]
        steps += [self.time_passes] * 2 + [self.reservation_is_seen, self.is_asked_for]
        steps += [self.node_is_seen, self.node_is_seen, self.node_is_deleted]
        if self.cluster.pods:
            steps += [self.is_seen_changed, self.is_seen_changed, self.is_seen_again]
        if self.pending():
            steps += [self.starts, self.is_looked_at, self.one_that_was_seen_is_asked_for]
            steps += [self.one_that_was_seen_is_asked_for, self.one_as_it_was_or_will_be_is_asked_for]
        if self.granted():
            steps += [self.a_granted_one_is_seen_changed] * 3
        return steps

    def pending(self):
        return [uid for uid, pod in self.cluster.pods.items() if pod.pending]

    def granted(self):
        return [uid for uid in self.recount.grants if uid in self.cluster.pods]

    def any_pod(self, pick):
        uid = pick(sorted(UIDS))
        return a_pod(pick, uid, *UIDS[uid])

    # What is seen

    def see(self, pod):
        self.trace.append(f"see {told(pod)}")
        self.cluster.upsert_pod(pod, self.now)
        self.recount.see(pod, self.now)

    def is_seen(self, pick):
        self.see(self.any_pod(pick))

    def is_seen_changed(self, pick):
        pod = self.cluster.pods[pick(sorted(self.cluster.pods))]
        self.see(replace(pod, **pick(CHANGES), version=pick(VERSIONS)))

    def a_granted_one_is_seen_changed(self, pick):
        pod = self.cluster.pods[pick(sorted(self.granted()))]
        self.see(replace(pod, **pick(CHANGES), version=pick(VERSIONS)))

    def is_seen_again(self, pick):
        self.see(self.cluster.pods[pick(sorted(self.cluster.pods))])

    def is_deleted(self, pick):
        uid = pick(sorted(UIDS))
        self.trace.append(f"delete {uid}")
        self.cluster.delete_pod(uid)
        self.recount.see_deleted(uid)

    def quota_is_seen(self, pick):
        quota = a_quota(pick)
        self.trace.append(f"see {quota}")
        self.cluster.upsert_quota(quota)
        self.recount.see_quota(quota)

    def quota_is_deleted(self, pick):
        namespace, name = pick(NAMESPACES), pick("xy")
        self.trace.append(f"delete quota {namespace}/{name}")
        self.cluster.delete_quota(namespace, name)
        self.recount.see_quota_deleted(namespace, name)

    def reservation_is_seen(self, pick):
        name, uid = pick("rs"), pick((None, None, *UIDS))
        self.trace.append(f"reservation {name} for {uid}")
        if uid is None:
            self.cluster.delete_reservation(name)
            self.recount.see_reservation_deleted(name)
        else:
            reservation = Reservation(name, PodName(*UIDS[uid], uid), "n1", (), since=0)
            self.cluster.upsert_reservation(reservation)
            self.recount.see_reservation(reservation)

    def see_node(self, node):
        self.trace.append(f"see {node}")
        self.cluster.upsert_node(node)
        self.recount.see_node(node)

    def node_is_seen(self, pick):
        node = pick(NODES)
        self.see_node(replace(node, **pick(NODE_STATES)))

    def node_is_deleted(self, pick):
        name = pick(("n1", "n2"))
        self.trace.append(f"delete node {name}")
        self.cluster.delete_node(name)
        self.recount.see_node_deleted(name)

    def starts(self, pick):
        self.trace.append("start")
        self.cluster.in_flight.suspect(self.now)
        self.recount.start(self.now)

    def time_passes(self, pick):
        self.pass_time(pick((0.0, 0.5, 1.5, 4.0, 9.0)))

    def pass_time(self, seconds):
        self.trace.append(f"wait {seconds} s")
        self.now += seconds
        self.cluster.tick(self.now)
        self.recount.pass_time(self.now)
        self.cluster.leaving.pass_time(self.now)
        self.recount.pass_epoch(self.now)

    # What is decided

    def ask(self, pod):
        self.trace.append(f"ask for {told(pod)}")
        expected = self.recount.ask(pod, self.now)
        try:
            answer = said(self.cluster.admit(pod, self.now))
        except Unsettled:
            answer = ("unsettled", [])
        assert answer == expected

    def is_asked_for(self, pick):
        self.ask(self.any_pod(pick))

    def one_that_was_seen_is_asked_for(self, pick):
        self.ask(self.cluster.pods[pick(sorted(self.pending()))])

    def one_as_it_was_or_will_be_is_asked_for(self, pick):
        pod = self.cluster.pods[pick(sorted(self.pending()))]
        self.ask(replace(pod, version=pick(VERSIONS), unschedulable=None))

    def is_looked_at(self, pick):
        """Nothing of this changes anything; the check after it tells."""
        pod, generation = self.cluster.pods[pick(sorted(self.pending()))], self.cluster.generations.admission
        assert said(self.cluster.check(pod)) == self.recount.refusal(pod, with_in_flight=True)
        verdict_on(self.cluster, pod.namespace, pod.name)
        to_wake(self.cluster)
        assert self.cluster.generations.admission == generation

    # What has to hold

    def check(self):
        at_once(self.cluster.states.catch_up_steps())
        self.check_accounts()
        self.check_pool()
        self.check_that_nothing_else_is_kept()
        self.check_who_is_refused()
        self.check_that_who_becomes_admissible_is_announced()

    def check_accounts(self):
        recount, ledger = self.recount, self.cluster.ledger
        for namespace in NAMESPACES:
            account = ledger.account(namespace)
            assert account.quota == recount.in_force().get(namespace) or account.quota.errors
            assert account.assigned == amounts(recount.assigned(), namespace)
            assert account.used == amounts(recount.used(), namespace)
            waiting = [pod for pod in recount.waiting() if pod.namespace == namespace]
            held = [pod for pod in waiting if recount.is_held(pod)]
            assert account.pinned == amounts([p for p in recount.used() + held if not p.preemptible], namespace)
            assert account.in_flight == amounts(recount.flying(), namespace)
            assert account.held == amounts(held, namespace)
            assert account.nominated == {
                priority: amounts([pod for pod in waiting if pod.priority == priority], namespace)
                for priority in {pod.priority for pod in waiting}
            }
            hoping = [pod for pod in recount.hoping() if pod.namespace == namespace]
            assert account.pending == amounts(hoping, namespace)
            assert account.claim == recount.claim(namespace)

    def check_pool(self):
        accounts = self.cluster.ledger.accounts
        assert self.cluster.ledger.over_min == {name for name, account in accounts.items() if account.over_min}
        for namespace, account in accounts.items():
            least = account.quota.min if account.quota else {"": 0}
            lent = max(((account.used.get(r, 0) - m) / max(m, 1) for r, m in least.items()), default=inf)
            assert share_lent(self.cluster.ledger, namespace, "") == lent
        recount, pool = self.recount, self.cluster.ledger.pool
        assert pool.min == recount.lent()
        assert pool.used == amounts(recount.used(), *recount.in_force())
        assert pool.in_flight == amounts(recount.flying(), *recount.in_force())
        assert pool.nominated == amounts(recount.ahead_elsewhere(None), *NAMESPACES)
        assert pool.claims == total(recount.claim(namespace) for namespace in NAMESPACES)
        assert pool.outside == amounts(recount.used(), *{*NAMESPACES} - {*recount.in_force()})

    def check_that_nothing_else_is_kept(self):
        overdue = {uid for uid, pod in self.recount.pods.items() if pod.assigned and self.recount.is_overdue(pod)}
        assert self.cluster.leaving.overdue.uids() == overdue
        standing = self.recount.used() + self.recount.waiting() + self.recount.flying() + self.recount.hoping()
        assert sorted(self.cluster.ledger.entries) == sorted(pod.uid for pod in standing)
        namespaces = {pod.namespace for pod in standing} | {*self.recount.in_force()}
        assert self.cluster.ledger.accounts.keys() == namespaces
        assert {uid for uid in UIDS if uid in self.cluster.grants} == set(self.recount.grants)
        assert len(self.cluster.grants) == len(self.recount.grants)

    def check_who_is_refused(self):
        assert self.cluster.pods == self.recount.pods
        assert set(self.cluster.attempts.refused) == {
            uid for uid, pod in self.recount.pods.items() if pod.pending and ours(pod)
        }
        for pod in self.cluster.pods.values():
            assert self.cluster.pod(pod.namespace, pod.name) is pod

    def check_that_who_becomes_admissible_is_announced(self):
        kept_out = {
            uid: pod
            for uid, pod in self.cluster.attempts.refused.items()
            if uid not in self.recount.grants and self.recount.refusal(pod, with_in_flight=True) is not None
        }
        for uid, pod in self.kept_out.items():
            if uid not in kept_out and uid not in self.recount.grants and self.cluster.attempts.refused.get(uid) is pod:
                assert self.cluster.generations.admission > self.generation
        self.generation, self.kept_out = self.cluster.generations.admission, kept_out

    def finish(self):
        """When all time has passed, nothing is granted or in flight; when all pods are gone, nothing is left."""
        self.pass_time(1000.0)
        assert len(self.cluster.grants) == 0
        assert {entry.kind for entry in self.cluster.ledger.entries.values()} <= STANDING
        self.check()
        for uid in UIDS:
            self.is_deleted(lambda _, uid=uid: uid)
        assert self.cluster.ledger.entries == {}
        self.check()


def said(refusal):
    return refusal and (refusal.rule, list(refusal.resources))


def told(pod: Pod) -> str:
    """What matters of a pod, and differs from the plainest one."""
    plain = Pod(pod.uid, pod.namespace, pod.name, {})
    fields = (
        "request",
        "priority",
        "node",
        "finished",
        "terminating",
        "deletion_time",
        "nominated_node",
        "gated",
        "preemptible",
        "unschedulable",
    )
    told = {
        field: getattr(pod, field) for field in (*fields, "version") if getattr(pod, field) != getattr(plain, field)
    }
    return f"{pod.uid} {pod.namespace}/{pod.name} {told}"


@given(st.data())
def test_the_ledger_equals_a_recount(data):
    pick = by_hypothesis(data)
    walk(LedgerWalker(pick), pick, length=20)


@pytest.mark.parametrize("seed", range(8))
def test_the_ledger_equals_a_recount_after_long_walks(seed, monkeypatch):
    monkeypatch.setattr(pod_states, "AT_ONCE", seed % 2)  # most of what only waits is entered later
    for number in range(scaled(60)):
        pick = by_dice(1000 * seed + number)
        walk(LedgerWalker(pick), pick, length=60)
