"""Whatever happens in whatever order: the ledger is what a recount from scratch finds, and decides as it would."""

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from policy.admission import Rules
from policy.cluster import Cluster, Unsettled
from policy.elastic_quota import refused_by
from policy.pod import Pod
from policy.reservation import PodName, Reservation
from policy.waking import to_wake
from tests.properties.recount import Recount, amounts
from tests.properties.world import NAMESPACES, changes, pods, quotas, unreadable_quotas, versions

# Two pods of one name are the pod and the one that was made anew after it.
UIDS = {
    "a1": ("a", "one"),
    "a2": ("a", "two"),
    "a3": ("a", "one"),
    "b1": ("b", "one"),
    "b2": ("b", "two"),
    "c1": ("c", "one"),
}
any_pod = pods([(uid, *rest) for uid, rest in UIDS.items()])
any_uid = st.sampled_from(sorted(UIDS))
choices = st.integers(0, len(UIDS) - 1)


class LedgerMachine(RuleBasedStateMachine):
    @initialize(strict=st.booleans(), first=quotas("a"), second=quotas("b"), known=st.lists(any_pod, max_size=8))
    def begin(self, strict, first, second, known):
        self.now = 0.0
        self.cluster = Cluster(Rules(strict_borrowing=strict), grant_lifetime=8, settle_time=3)
        self.recount = Recount(strict=strict, lifetime=8, settle_time=3)
        self.eased, self.kept_out = 0, {}
        self.see_quota(first)
        self.see_quota(second)
        for pod in known:
            self.see(pod)

    def one_of(self, uids, choice):
        return self.cluster.pods[sorted(uids)[choice % len(uids)]]

    def pending(self):
        return [uid for uid, pod in self.cluster.pods.items() if pod.pending]

    def granted(self):
        return [uid for uid in self.recount.grants if uid in self.cluster.pods]

    # What is seen

    @rule(pod=any_pod)
    def see(self, pod):
        self.cluster.upsert_pod(pod, self.now)
        self.recount.see(pod, self.now)

    @precondition(lambda self: self.cluster.pods)
    @rule(choice=choices, change=changes, version=versions)
    def see_changed(self, choice, change, version):
        self.see(replace(self.one_of(self.cluster.pods, choice), version=version, **change))

    @precondition(lambda self: self.granted())
    @rule(choice=choices, change=changes, version=versions)
    def see_a_granted_one_changed(self, choice, change, version):
        self.see(replace(self.one_of(self.granted(), choice), version=version, **change))

    @precondition(lambda self: self.cluster.pods)
    @rule(choice=choices)
    def see_again(self, choice):
        self.see(self.one_of(self.cluster.pods, choice))

    @rule(uid=any_uid)
    def see_deleted(self, uid):
        self.cluster.delete_pod(uid)
        self.recount.see_deleted(uid)

    @rule(quota=quotas(*NAMESPACES) | unreadable_quotas(*NAMESPACES))
    def see_quota(self, quota):
        self.cluster.upsert_quota(quota)
        self.recount.see_quota(quota)

    @rule(namespace=st.sampled_from(NAMESPACES), name=st.sampled_from(("x", "y")))
    def see_quota_deleted(self, namespace, name):
        self.cluster.delete_quota(namespace, name)
        self.recount.see_quota_deleted(namespace, name)

    @rule(name=st.sampled_from(("r", "s")), uid=any_uid | st.none())
    def see_reservation(self, name, uid):
        if uid is None:
            self.cluster.delete_reservation(name)
            self.recount.see_reservation_deleted(name)
        else:
            reservation = Reservation(name, PodName(*UIDS[uid], uid), "n1", (), since=0)
            self.cluster.upsert_reservation(reservation)
            self.recount.see_reservation(reservation)

    @precondition(lambda self: self.pending())
    @rule()
    def start(self):
        self.cluster.suspect_pending(self.now)
        self.recount.start(self.now)

    @rule(seconds=st.sampled_from((0.0, 0.5, 1.5, 4.0, 9.0)))
    def pass_time(self, seconds):
        self.now += seconds
        self.cluster.tick(self.now)
        self.recount.pass_time(self.now)

    # What is decided

    @rule(pod=any_pod)
    def ask(self, pod):
        expected = self.recount.ask(pod, self.now)
        try:
            refused = self.cluster.admit(pod, self.now)
        except Unsettled:
            assert expected == ("unsettled", [])
        else:
            assert (refused and (refused.rule, list(refused.resources))) == expected

    @precondition(lambda self: self.pending())
    @rule(choice=choices)
    def ask_for_one_that_was_seen(self, choice):
        self.ask(self.one_of(self.pending(), choice))

    @precondition(lambda self: self.pending())
    @rule(choice=choices, version=versions)
    def ask_for_one_as_it_was_or_will_be(self, choice, version):
        self.ask(replace(self.one_of(self.pending(), choice), version=version, unschedulable=None))

    @precondition(lambda self: self.pending())
    @rule(choice=choices)
    def look(self, choice):
        """Nothing of this changes anything; the invariants below tell."""
        pod, eased = self.one_of(self.pending(), choice), self.cluster.eased
        refused = self.cluster.check(pod)
        expected = self.recount.refusal(pod, with_in_flight=True)
        assert (refused and (refused.rule, list(refused.resources))) == expected
        self.cluster.verdict(pod.namespace, pod.name)
        to_wake(self.cluster)
        assert self.cluster.eased == eased

    # What has to hold

    @invariant()
    def every_account_is_what_a_recount_finds(self):
        recount, ledger = self.recount, self.cluster.ledger
        for namespace in NAMESPACES:
            account = ledger.account(namespace)
            assert account.quota == recount.in_force().get(namespace) or account.quota.errors
            assert account.assigned == amounts(recount.assigned(), namespace)
            assert account.granted == amounts(recount.granted(), namespace)
            assert account.used == amounts(recount.used(), namespace)
            assert account.pinned == amounts([pod for pod in recount.used() if not pod.preemptible], namespace)
            assert account.in_flight == amounts(recount.flying(), namespace)
            waiting = [pod for pod in recount.waiting() if pod.namespace == namespace]
            assert account.held == amounts([pod for pod in waiting if recount.is_held(pod)], namespace)
            assert account.nominated == {
                priority: amounts([pod for pod in waiting if pod.priority == priority], namespace)
                for priority in {pod.priority for pod in waiting}
            }

    @invariant()
    def the_pool_is_what_a_recount_finds(self):
        recount, pool = self.recount, self.cluster.ledger.pool
        assert pool.min == recount.lent()
        assert pool.used == amounts(recount.used(), *recount.in_force())
        assert pool.in_flight == amounts(recount.flying(), *recount.in_force())
        assert pool.nominated == amounts(recount.ahead_elsewhere(None), *NAMESPACES)

    @invariant()
    def nothing_is_kept_beyond_what_stands_for_something(self):
        standing = self.recount.used() + self.recount.waiting() + self.recount.flying()
        assert sorted(self.cluster.ledger.entries) == sorted(pod.uid for pod in standing)
        assert len(self.cluster.grants) == len(self.recount.grants)
        assert {uid for uid in self.recount.grants if uid in self.cluster.grants} == set(self.recount.grants)

    @invariant()
    def the_refused_are_those_of_whom_the_scheduler_last_said_so(self):
        assert self.cluster.pods == self.recount.pods
        assert set(self.cluster.refused) == {
            uid for uid, pod in self.recount.pods.items() if pod.pending and refused(pod)
        }
        for pod in self.cluster.pods.values():
            assert self.cluster.pod(pod.namespace, pod.name) is pod

    @invariant()
    def who_is_refused_and_becomes_admissible_is_announced(self):
        kept_out = {
            uid: pod
            for uid, pod in self.cluster.refused.items()
            if uid not in self.recount.grants and self.recount.refusal(pod, with_in_flight=True) is not None
        }
        for uid, pod in self.kept_out.items():
            if uid not in kept_out and uid not in self.recount.grants and self.cluster.refused.get(uid) is pod:
                assert self.cluster.eased > self.eased
        self.eased, self.kept_out = self.cluster.eased, kept_out

    def teardown(self):
        """When all time has passed, nothing is granted and nothing in flight any more."""
        if hasattr(self, "cluster"):
            self.pass_time(1000.0)
            assert len(self.cluster.grants) == 0
            assert {entry.kind for entry in self.cluster.ledger.entries.values()} <= {"assigned", "nominated", "held"}
            self.every_account_is_what_a_recount_finds()
            for uid in list(self.cluster.pods):
                self.see_deleted(uid)
            assert self.cluster.ledger.entries == {}
            self.the_pool_is_what_a_recount_finds()


def refused(pod: Pod) -> bool:
    return pod.unschedulable is not None and refused_by(pod.unschedulable.message) is not None


TestLedgerEqualsRecount = LedgerMachine.TestCase
